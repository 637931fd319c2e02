import { setImmediate as nextTurn } from "node:timers/promises";
import { create, type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { Direction, type PageInfo, PageInfoSchema, type PageInput, Pending } from "#gen/belfry/paging/v1/paging_pb.ts";
import { type CursorPlace, decodeCursor, encodeCursor, queryDigest } from "./cursor.ts";

const LIMIT_MAX = 1000;

/** Which page of a query to read: `limit` rows and one more, that lie beyond a row. */
export interface PageRequest {
  limit: number;
  backward: boolean;
  /** The row that the page lies beyond; undefined: the page begins the list. */
  after: CursorPlace | undefined;
  /** Matches of the whole query, as the first page has counted them. */
  counted: bigint | undefined;
  /**
   * The page of the rows that were read, which are in the list's order with the one too many, and where it lies.
   * @param total matches of the whole query: those of `counted`, or counted now.
   * @param limit rows of the page, where it must hold fewer than were asked for
   */
  cut<T>(
    rows: readonly T[],
    keysOf: (row: T) => (string | null)[],
    total: bigint,
    limit?: number,
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
  // `cut` throws its failure, when the request comes as far as that.
  if (digest instanceof Promise) digest.catch(() => undefined);
  const place = digest instanceof Promise ? undefined : decodeCursor(kind, tenantId, digest, cursor, `${path}.cursor`);
  // After the keys: how many matched.
  const counted = place?.texts.at(-1);
  if (place !== undefined && !/^\d{1,15}$/.test(counted ?? "")) throw place.wrong();
  return {
    limit,
    backward,
    after: place && { ...place, texts: place.texts.slice(0, -1) },
    counted: counted == null ? undefined : BigInt(counted),
    async cut(rows, keysOf, total, cutLimit = limit) {
      const made = await digest;
      const more = rows.length > cutLimit;
      const items = backward ? rows.slice(-cutLimit) : rows.slice(0, cutLimit);
      const cursorOf = (row: (typeof items)[number] | undefined) =>
        row === undefined ? "" : encodeCursor(kind, tenantId, made, [...keysOf(row), String(total)]);
      const info = create(PageInfoSchema, {
        startCursor: cursorOf(items[0]),
        endCursor: cursorOf(items.at(-1)),
        count: BigInt(items.length),
        totalCount: total,
        hasNext: backward ? place !== undefined : more,
        hasPrev: backward ? more : place !== undefined,
        pending: Pending.FALSE,
      });
      return { items, info };
    },
  };
}
