import type { RuleRef } from "../deciding/verdict.ts";
import type { ThreadState } from "../kinds/attempt-outcome.ts";
import type { Attempt } from "./attempts.ts";
import type { ClaimedDelivery } from "./delivery-queue.ts";
import type { Sign } from "./destination-state.ts";
import type { Membership } from "./summaries.ts";

/** What is to be recorded of a delivery. */
export interface Result {
  readonly row: ClaimedDelivery;
  /** PENDING: it is tried again at `dueMs`. */
  readonly status: "PENDING" | "SENT" | "FAILED" | "CANCELLED" | "SUMMARISED";
  readonly error: string;
  readonly dueMs?: number;
  /** The silence that holds it until then. */
  readonly silenceId?: string;
  /** The rules whose matches it waits for until then. */
  readonly awaited?: readonly RuleRef[];
  /** Absent: there was no try. */
  readonly attempt?: Attempt;
  readonly slow?: boolean;
  /** What the next one of the same destination and subject is to know: no state after the end. Absent: nothing new. */
  readonly thread?: {
    readonly state: ThreadState;
    readonly sent: boolean;
    /** Of this summary; absent: of the delivery's own subject. */
    readonly summary?: string;
  };
  /** The summaries that report the match which has ended with it. */
  readonly over?: readonly Membership[];
  /** The summary that it was to be sent as, and surely was not. */
  readonly unsent?: string;
  /** What the try says of the destination; absent: nothing. */
  readonly sign?: Sign;
  /** Why the destination is to be disabled. */
  readonly disable?: string;
  /** The root whose bound of events it would have passed. */
  readonly beyond?: string;
}
