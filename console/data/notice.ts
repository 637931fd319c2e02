import { signal } from "@preact/signals";

/** What was just done, and how to take it back where the API can. */
interface Notice {
  readonly text: string;
  readonly undo?: () => Promise<unknown>;
  /** It says what went wrong: it stays until it is closed. */
  readonly failed?: boolean;
}

export const notice = signal<Notice | undefined>(undefined);

/** Says what was done. With `undo` there is a button that takes it back. */
export function say(text: string, undo?: () => Promise<unknown>): void {
  notice.value = undo === undefined ? { text } : { text, undo };
}

/** Says what went wrong. */
export function sayFailure(text: string): void {
  notice.value = { text, failed: true };
}

/** Takes it out of sight: what another session did is no matter of this one, and cannot be taken back by it. */
export function unsay(): void {
  notice.value = undefined;
}
