import type { Occasion } from "../subject/notification.ts";
import type { DeliverySnapshot } from "../subject/snapshot.ts";

/** Names a rule: another one of its name has another id. */
export interface RuleRef {
  readonly id: string;
  readonly name: string;
}

/** A rule that notifies a destination of a subject. */
export interface StandingRule extends RuleRef {
  /** True if its first notification waits for its delay, and may come to nothing. */
  readonly delayed: boolean;
}

/** Tells whether a delivery is still needed, with its current state where it was re-evaluated. */
export type Verdict =
  | {
      readonly send: true;
      readonly told?: DeliverySnapshot;
      /** Replaces its occasion, where that has changed meanwhile. */
      readonly occasion?: Occasion;
      /** Of an end: the rules that still notify the destination of the subject, this delivery's own among them. */
      readonly standing?: readonly StandingRule[];
    }
  | ({ readonly send: false; readonly reason: string } & Partial<Ends>)
  /** Not known yet: it is asked about again. */
  | { readonly send: "later" }
  /** Not asked yet for want of time: it is as soon as it is claimed again. */
  | { readonly send: "next" }
  /** The end of a summary, of which a match still stands. */
  | { readonly send: "held" }
  /** A silence holds it until then, ms. */
  | ({ readonly send: "silenced"; readonly silenceId: string; readonly untilMs: number } & Partial<Ends>);

/** Returns that a delivery is not needed, for a reason that its record keeps. */
export const unneeded = (reason: string) => ({ send: false, reason }) satisfies Verdict;

/** Marks a message that reports ends, which no other reports: it is sent all the same if anything was sent before it. */
export interface Ends {
  readonly reportsEnds: true;
}
