import { create } from "@bufbuild/protobuf";
import {
  type ListCustomPropertyUpdatersRequest,
  ListCustomPropertyUpdatersRequestSchema,
  type ListCustomPropertyUpdatersResponse,
  ListCustomPropertyUpdatersResponseSchema,
} from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { beyond, keyTexts, orderBy, type SortKey } from "../db/paging/keyset.ts";
import { pageRequest } from "../db/paging/page-request.ts";
import { toUpdater, type UpdaterRow } from "./messages.ts";

const limitDefault = 50;

/** Updaters by name, page by page. @throws code 3 for a bad cursor. */
export async function listUpdaters(
  db: Db,
  tenantId: string,
  { pageInput }: ListCustomPropertyUpdatersRequest,
): Promise<ListCustomPropertyUpdatersResponse> {
  const schema = ListCustomPropertyUpdatersRequestSchema;
  const page = pageRequest("updaters", tenantId, pageInput, "page_input", schema, create(schema), limitDefault);
  const keys: SortKey[] = [{ expression: db`name`, type: "text", descending: false }];
  // By property_updaters_name.
  const rows = await db<(UpdaterRow & { key_texts: (string | null)[] })[]>`
    select id, name, description, entity_input, properties, enabled, sequence, tags, ${keyTexts(db, keys)} as key_texts
    from property_updaters
    where tenant_id = ${tenantId} and ${page.after === undefined ? db`true` : beyond(db, keys, page.after, page.backward)}
    order by ${orderBy(db, keys, page.backward)} limit ${page.limit + 1}`;
  if (page.backward) rows.reverse();
  const { items, info } = await page.cut(rows, (row) => row.key_texts, 0n);
  const hasNext = page.backward ? info.hasPrev : info.hasNext;
  const cursor = page.backward ? info.startCursor : info.endCursor;
  return create(ListCustomPropertyUpdatersResponseSchema, {
    updaters: items.map(toUpdater),
    pageInfo: { hasNext, cursor },
  });
}
