import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { decodeCursor, encodeCursor } from "../../db/paging/cursor.ts";
import { invalidField } from "../../errors.ts";

/** Behind which change of the feed a watch stands: its row, and how many of the row's changes it has passed. */
export interface FeedPosition {
  /** 0: before the first row. */
  position: bigint;
  /** When the row was written, ms: after a restored backup another row may have its position. */
  createdMs: bigint;
  passed: number;
}

/** Whether a place stands after another one. */
export const isBehind = (one: FeedPosition, other: FeedPosition) =>
  one.position > other.position || (one.position === other.position && one.passed > other.passed);

/** The cursor of a place in the feed, for watches of one tenant with the query of this digest. */
export function placeCursor(
  tenantId: string,
  digest: Uint8Array,
  { position, createdMs, passed }: FeedPosition,
): string {
  return encodeCursor("watch", tenantId, digest, [String(position), String(createdMs), String(passed)]);
}

/** The place of a cursor. @throws code 3 when it is damaged, or of another tenant or query. */
export function cursorPlace(tenantId: string, digest: Uint8Array, cursor: string): FeedPosition {
  const { texts, wrong } = decodeCursor("watch", tenantId, digest, cursor, "cursor");
  const [position, createdMs, passed] = texts;
  if (texts.length !== 3 || !texts.every((text) => /^\d{1,18}$/.test(text ?? ""))) throw wrong();
  return { position: BigInt(position ?? 0), createdMs: BigInt(createdMs ?? 0), passed: Number(passed) };
}

/** Code 3: changes after the cursor are no longer kept, or the database was restored to a moment before it. */
export const placeExpired = () =>
  invalidField(
    "cursor",
    "is older than the hour for which changes are kept; search, and watch without a cursor",
    FieldRule.CURSOR,
  );
