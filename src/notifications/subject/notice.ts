import type { Delivery } from "./delivery.ts";
import type { Occasion } from "./notification.ts";

/** What a silence was found to hold, until then, ms. */
export interface Hold {
  readonly silenceId: string;
  readonly untilMs: number;
}

/** What mutes a rule's notifications to a destination, and until when, ms. */
export interface Mute {
  /** A window mutes a match, of which `decide` hears before there are deliveries; all others hold deliveries. */
  readonly by: "silence" | "window";
  /** Empty for a window: an entity does not say in which ones it is. */
  readonly id: string;
  /** Infinity: its end is not known. */
  readonly untilMs: number;
}

/** What of a rule mutes depend on. */
export interface MutedRule {
  readonly name: string;
  readonly muteDuringMaintenance: boolean;
}

/** Answers about a subject in one state: what mutes a rule's notifications to a destination, one of each kind at most. */
export type MutedBy = (rule: MutedRule, destinationName: string) => readonly Mute[];

/** A notification to each destination of the rule. */
export interface Due {
  readonly occasion: Occasion;
  /** Greater than that of all earlier ones of the rule and subject. */
  readonly createdMs: number;
  readonly dueMs: number;
}

/** What holds notifications back, by destination. */
export type Holds = ReadonlyMap<string, Hold>;

/** A notification that is to go to destinations. */
export interface Notice extends Due, Omit<Delivery, "id" | "destinationName"> {
  readonly destinationNames: readonly string[];
  readonly holds?: Holds;
}

/** A subject of which something has ended: what waits of it is looked at again now. */
export interface Over {
  readonly rule: { readonly id: string; readonly destinationNames: readonly string[] };
  readonly key: Buffer;
  /** Whether only what silences hold is looked at. */
  readonly heldOnly: boolean;
}
