import type { TriggerType } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Later } from "../../../clause/expression.ts";
import type { EntityRow } from "../../../entities/messages.ts";
import type { Pace } from "../../../event-loop.ts";
import type { Labels } from "../../../metrics/labels.ts";
import type { Reason } from "../../subject/reason.ts";
import type { MatchRow, TriggerFields } from "../rows.ts";
import type { EventTrigger } from "../trigger-index.ts";

/** Its member in the oneof of `TriggerType`. */
export type SourceName = NonNullable<TriggerType["source"]["case"]>;

/** A trigger of a source, compiled once for all data. */
export interface ReadyTrigger {
  /** Of a source of occurrences: what asks each of them. */
  readonly event?: Omit<EventTrigger, "name">;
  /** Of one that asks for some entities only: whether it means this one. */
  readonly means?: ((entity: EntityRow, pace: Pace) => Later<boolean>) | undefined;
  /** Of one that asks for some series only: whether it means those of these labels. */
  readonly meansLabels?: ((labels: Labels | undefined) => boolean) | undefined;
}

/** Why a trigger does not match an occurrence. */
export interface Mismatch {
  readonly reason: Reason;
  /** The part of its clause that is false. */
  readonly path?: string;
}

/** Data by which triggers are found (`TriggerSource.data`). */
export const metricData = (name: string) => `metric ${name}`;
export const eventData = (name: string) => `event ${name}`;

/** What triggers look at: a member of the oneof, from the check of its message to what it matches. */
export interface TriggerSource<S> {
  /** Checks it beyond the rules of its proto file. `path` is its place in the request. @throws code 3 with the path of what is wrong; code 12 */
  check(source: S, path: string): void;
  /** Says what may be stored and is most likely a slip. */
  doubt?(source: S): string;
  /** Makes what earlier versions stored fit today's bounds. */
  fit?(source: S): void;
  /** @throws what `check` does; what is stored has been checked */
  ready(source: S, fields: TriggerFields): ReadyTrigger;
  /** With how many texts it compares each event; absent: none. */
  comparisons?(source: S): number;
  /** What of the data it looks at, as `metricData` and `eventData` name them; absent: it is not found by that. */
  data?(source: S): readonly string[];
  /** Of a source of occurrences: why it does not match one; undefined: it does. Absent: what is noted of its match decides. */
  mismatch?(source: S, row: MatchRow, values: TriggerFields["events"], pace: Pace): Promise<Mismatch | undefined>;
}
