import { type CursorPlace, decodeCursor, encodeCursor, queryDigest } from "./cursor.ts";

const sizeMax = 1000;

/** Which page of a list to read, for lists that take `pageSize` and `pageToken`. */
export interface TokenPage {
  /** Rows to read: one more than the page holds; null: all. */
  readonly rowsMax: number | null;
  /** The row that the page lies beyond; undefined: the page begins the list. */
  readonly after: CursorPlace | undefined;
  /** The page of the rows that were read, at most `fitting`, and the token of the next one; empty on the last page. */
  cut<T>(
    rows: readonly T[],
    keysOf: (row: T) => (string | null)[],
    fitting?: number,
  ): { items: T[]; nextPageToken: string };
  /** The token of the page after the row with these keys. */
  tokenOf(keys: (string | null)[]): string;
}

/**
 * Reads `pageSize` and `pageToken` of a list. `query` is all else that decides its result: a token of another kind,
 * tenant or query is refused. `sizeDefault` null: all rows when no size is given. @throws code 3 at pageToken.
 */
export function tokenPage(
  kind: string,
  tenantId: string,
  { pageSize, pageToken }: { pageSize: number; pageToken: string },
  query: string,
  sizeDefault: number | null = 100,
): TokenPage {
  const size = pageSize === 0 ? sizeDefault : Math.min(pageSize, sizeMax);
  const digest = queryDigest(query);
  const after = pageToken === "" ? undefined : decodeCursor(kind, tenantId, digest, pageToken, "pageToken");
  const tokenOf = (keys: (string | null)[]) => encodeCursor(kind, tenantId, digest, keys);
  return {
    rowsMax: size === null ? null : size + 1,
    after,
    cut(rows, keysOf, fitting = rows.length) {
      const items = rows.slice(0, Math.min(size ?? rows.length, fitting));
      const last = items.at(-1);
      const more = items.length < rows.length && last !== undefined;
      return { items, nextPageToken: more ? tokenOf(keysOf(last)) : "" };
    },
    tokenOf,
  };
}

/** A page of a list that reports how many rows it has: they are counted for the first page, and its token carries the number. */
export interface CountedPage extends Pick<TokenPage, "rowsMax" | "after"> {
  /** Rows of the whole list: as the first page has counted them, else what `count` answers. */
  total(count: () => PromiseLike<number | bigint>): Promise<bigint>;
  /** As of a TokenPage. */
  cut<T>(
    rows: readonly T[],
    keysOf: (row: T) => (string | null)[],
    total: bigint,
    fitting?: number,
  ): { items: T[]; nextPageToken: string };
}

/** The same as `tokenPage`, for a list that reports how many rows it has. @throws code 3 at pageToken. */
export function countedPage(...list: Parameters<typeof tokenPage>): CountedPage {
  const { rowsMax, after, cut } = tokenPage(...list);
  // After the keys: how many there were.
  const counted = after?.texts.at(-1);
  if (after !== undefined && !/^\d{1,15}$/.test(counted ?? "")) throw after.wrong();
  return {
    rowsMax,
    after: after && { ...after, texts: after.texts.slice(0, -1) },
    total: async (count) => BigInt(counted ?? (await count())),
    cut: (rows, keysOf, total, fitting) => cut(rows, (row) => [...keysOf(row), String(total)], fitting),
  };
}
