import { setImmediate as nextTurn } from "node:timers/promises";
import { create, type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { Direction, type PageInfo, PageInfoSchema, type PageInput, Pending } from "#gen/belfry/db/v1/paging_pb.ts";
import { type CursorPlace, decodeCursor, encodeCursor, queryDigest } from "./cursor.ts";

const LIMIT_MAX = 1000;

/** How long pages go by what an earlier one has counted. */
const countedMsMax = 10_000;

/** Which page of a query to read: `limit` rows and one more, that lie beyond a row. */
export interface PageRequest {
  limit: number;
  backward: boolean;
  /** The row that the page lies beyond; undefined: the page begins the list. */
  after: CursorPlace | undefined;
  /** Matches of the whole query, where an earlier page has counted them a moment ago. */
  counted: bigint | undefined;
  /**
   * The page of the rows that were read, which stand in the list's order with the one too many, and where it lies.
   * @param total matches of the whole query: those of `counted`, or counted anew.
   */
  cut<T>(
    rows: readonly T[],
    keysOf: (row: T) => (string | null)[],
    total: bigint,
  ): Promise<{ items: T[]; info: PageInfo }>;
}

/**
 * Reads `pageInput`. `query` is all that a cursor belongs to: a cursor of another kind, tenant or query is refused.
 * @param path the page input's place in the request, for errors. @throws code 3 for a bad cursor.
 */
export function pageRequest<S extends DescMessage>(
  kind: string,
  tenantId: string,
  input: PageInput | undefined,
  path: string,
  schema: S,
  query: MessageShape<S>,
  limitDefault = 100,
): PageRequest {
  const limit = Math.min(input?.limit || limitDefault, LIMIT_MAX);
  const backward = input?.direction === Direction.BACKWARD;
  const digestOf = () => queryDigest(toBinary(schema, query));
  const cursor = input?.cursor ?? "";
  // A query may be long: a digest that no cursor needs yet is made while the rows are read.
  const digest = cursor === "" ? nextTurn().then(digestOf) : digestOf();
  // Its failure is told by `cut`, if anybody comes as far as that.
  if (digest instanceof Promise) digest.catch(() => undefined);
  const place = digest instanceof Promise ? undefined : decodeCursor(kind, tenantId, digest, cursor, `${path}.cursor`);
  const nowMs = Date.now();
  // Behind the keys: how many matched, and when that was counted.
  const told = place?.texts.slice(-2) ?? [];
  if (place !== undefined && !told.every((text) => /^\d{1,15}$/.test(text ?? ""))) throw place.wrong();
  const [count = 0, countedMs = Number.NaN] = told.map(Number);
  const fresh = Math.abs(nowMs - countedMs) <= countedMsMax;
  const after = place && { ...place, texts: place.texts.slice(0, -2) };
  const counted = fresh ? BigInt(count) : undefined;
  return {
    limit,
    backward,
    after,
    counted,
    async cut(rows, keysOf, total) {
      const made = await digest;
      const more = rows.length > limit;
      const items = backward ? rows.slice(-limit) : rows.slice(0, limit);
      const known = [String(total), String(counted === undefined ? nowMs : countedMs)];
      const cursorOf = (row: (typeof items)[number] | undefined) =>
        row === undefined ? "" : encodeCursor(kind, tenantId, made, [...keysOf(row), ...known]);
      const info = create(PageInfoSchema, {
        startCursor: cursorOf(items[0]),
        endCursor: cursorOf(items.at(-1)),
        count: BigInt(items.length),
        totalCount: total,
        hasNext: backward ? after !== undefined : more,
        hasPrev: backward ? more : after !== undefined,
        pending: Pending.FALSE,
      });
      return { items, info };
    },
  };
}
