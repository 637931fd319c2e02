import type { Occasion } from "./notification.ts";
import type { DeliverySnapshot } from "./snapshot.ts";
import type { SubjectRef } from "./subject.ts";

/** A notification of one rule for one destination, as every stage has it. Times are ms since the epoch. */
export interface Delivery {
  readonly id: string;
  readonly ruleId: string;
  readonly ruleName: string;
  readonly destinationName: string;
  /** The triggers of the rule that match, in its order. */
  readonly triggerNames: readonly string[];
  readonly subject: SubjectRef;
  readonly occasion: Occasion;
  readonly told: DeliverySnapshot;
  /** When it was decided. */
  readonly createdMs: number;
  /** When it is tried next: for its first try, when its delay ends. */
  readonly dueMs: number;
}

/** A delivery that waits to be tried. */
export interface WaitingDelivery extends Delivery {
  /** How often it was tried. */
  readonly tries: number;
  /** The silence that held it until it was due; null: none did. */
  readonly silenceId: string | null;
}
