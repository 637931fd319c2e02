import { type DescMessage, type MessageShape, toJsonString } from "@bufbuild/protobuf";
import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { keyTextsOf } from "../../db/paging/keyset.ts";
import { countedPage } from "../../db/paging/token-page.ts";

/** True for rows whose text contains `text`, in any case; undefined, which filters nothing, when it is empty. */
export function contains(column: SQLWrapper, text: string): SQL | undefined {
  if (text === "") return undefined;
  return sql`strpos(lower(${column} collate pg_c_utf8), lower(${text}::text collate pg_c_utf8)) > 0`;
}

/** The same for a column that holds a JSON list of texts: one of them contains `text`. */
export function oneContains(column: SQLWrapper, text: string): SQL | undefined {
  const found = contains(sql`item`, text);
  return found && sql`exists (select from jsonb_array_elements_text(${column}) as item where ${found})`;
}

/** Which rows of a list to read, in the order of names: those after a name, empty for the first, and no more than `limit`. */
export interface Part {
  after: string;
  limit: number;
}

/** A list's items by name: all of them, or a page when one is asked for. */
export interface ListedByName<T> {
  items: T[];
  totalCount: bigint;
  nextPageToken: string;
}

/**
 * Reads a list whose items are distinguished by their names. `read` answers those rows of a part that the request's filters
 * let pass, `count` how many they let pass in all. @throws code 3 at pageToken for one of another list, tenant or query
 */
export async function listByName<S extends DescMessage, T extends { name: string }>(
  schema: S,
  tenantId: string,
  request: MessageShape<S> & { pageSize: number; pageToken: string },
  read: (part: Part) => Promise<T[]>,
  count: () => Promise<number>,
): Promise<ListedByName<T>> {
  const query = toJsonString(schema, { ...request, pageSize: 0, pageToken: "" });
  const page = countedPage(schema.typeName, tenantId, request, query, request.pageToken === "" ? null : 100);
  if (page.rowsMax === null) {
    const items = await read({ after: "", limit: Number.MAX_SAFE_INTEGER });
    return { items, totalCount: BigInt(items.length), nextPageToken: "" };
  }
  const after = (page.after && keyTextsOf(page.after, ["text"])[0]) ?? "";
  const [rows, total] = await Promise.all([read({ after, limit: page.rowsMax }), page.total(count)]);
  return { ...page.cut(rows, ({ name }) => [name], total), totalCount: total };
}
