import type { Occasion } from "./notification.ts";
import type { DeliverySnapshot } from "./snapshot.ts";
import type { Subject } from "./subject.ts";

/** What a silence was found to hold, until then, ms. */
export interface Hold {
  readonly silenceId: string;
  readonly untilMs: number;
}

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
export interface Notice extends Due {
  readonly rule: { readonly id: string; readonly name: string };
  readonly destinationNames: readonly string[];
  readonly triggerNames: readonly string[];
  readonly subject: Pick<Subject, "key"> & Partial<Subject>;
  readonly told: DeliverySnapshot;
  readonly holds?: Holds;
}

/** A subject of which something has ended: what waits of it is looked at again now. */
export interface Over {
  readonly rule: { readonly id: string; readonly destinationNames: readonly string[] };
  readonly key: Buffer;
  /** Whether only what silences hold is looked at. */
  readonly heldOnly: boolean;
}
