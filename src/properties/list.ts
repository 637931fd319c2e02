import { create } from "@bufbuild/protobuf";
import {
  type ListCustomPropertyUpdatersRequest,
  ListCustomPropertyUpdatersRequestSchema,
  type ListCustomPropertyUpdatersResponse,
  ListCustomPropertyUpdatersResponseSchema,
} from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { beyond, orderBy, type SortKey } from "../db/paging/keyset.ts";
import { type Outlined, outlineColumns, type PageContents, withContents } from "../db/paging/page-contents.ts";
import { pageRequest } from "../db/paging/page-request.ts";
import { toUpdater, type UpdaterRow } from "./messages.ts";

const limitDefault = 50;

/** The others of an updater are at most 6 KiB together. */
const contents: PageContents<"entityInput" | "properties" | "tags"> = {
  table: "property_updaters",
  id: "text",
  columns: { entityInput: "entity_input", properties: "properties", tags: "tags" },
};
const gone = { entityInput: {}, properties: {}, tags: [] };

/** Updaters by name, page by page. @throws code 3 for a bad cursor. */
export async function listUpdaters(
  db: Db,
  tenantId: string,
  { pageInput }: ListCustomPropertyUpdatersRequest,
): Promise<ListCustomPropertyUpdatersResponse> {
  const schema = ListCustomPropertyUpdatersRequestSchema;
  const page = pageRequest("updaters", tenantId, pageInput, "page_input", schema, create(schema), limitDefault);
  const keys: SortKey[] = [{ expression: db`name`, type: "text", descending: false, required: true }];
  const place = page.after === undefined ? db`true` : beyond(db, keys, page.after, page.backward);
  // By property_updaters_name.
  const rows = await db<Outlined<UpdaterRow>[]>`
    select id, name, description, enabled, sequence, ${outlineColumns(db, contents)} from property_updaters
    where tenant_id = ${tenantId} and ${place}
    order by ${orderBy(db, keys, page.backward)} limit ${page.limit + 1}`;
  const whole = await withContents(db, tenantId, contents, rows, { limit: page.limit, gone });
  const ordered = page.backward ? whole.rows.toReversed() : whole.rows;
  const { items, info } = await page.cut(ordered, (row) => [row.name], 0n, whole.count);
  const hasNext = page.backward ? info.hasPrev : info.hasNext;
  const cursor = page.backward ? info.startCursor : info.endCursor;
  return create(ListCustomPropertyUpdatersResponseSchema, {
    updaters: items.map(toUpdater),
    pageInfo: { hasNext, cursor },
  });
}
