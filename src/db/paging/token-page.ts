import { type CursorPlace, decodeCursor, encodeCursor, queryDigest } from "./cursor.ts";

const sizeMax = 1000;

/** Which page of a list to read, for lists that take `pageSize` and `pageToken`. */
export interface TokenPage {
  /** Rows to read: one more than the page holds; null: all. */
  readonly rowsMax: number | null;
  /** The row that the page lies beyond; undefined: the page begins the list. */
  readonly after: CursorPlace | undefined;
  /** The page of the rows that were read, and the token of the next one; empty on the last page. */
  cut<T>(rows: readonly T[], keysOf: (row: T) => (string | null)[]): { items: T[]; nextPageToken: string };
  /** The token of the page behind the row with these keys. */
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
    cut(rows, keysOf) {
      const items = size === null ? [...rows] : rows.slice(0, size);
      const last = items.at(-1);
      const more = items.length < rows.length && last !== undefined;
      return { items, nextPageToken: more ? tokenOf(keysOf(last)) : "" };
    },
    tokenOf,
  };
}
