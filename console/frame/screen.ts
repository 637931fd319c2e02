import type { ComponentType } from "preact";

/** A screen: its name in addresses, what the navigation calls it, and its code, which is loaded when it is first opened. */
export interface Screen {
  readonly name: string;
  /** Undefined: opened from other screens alone. */
  readonly label?: string;
  /** The screen that the navigation marks while this one is open. */
  readonly below?: string;
  /** The key that leads to it after `g`. */
  readonly letter?: string;
  /** Its sections, by their names in addresses. */
  readonly sections?: () => Promise<Readonly<Record<string, { readonly label: string }>>>;
  load(): Promise<ComponentType>;
}
