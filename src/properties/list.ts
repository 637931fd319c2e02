import { create } from "@bufbuild/protobuf";
import { and, desc, eq, gt, lt } from "drizzle-orm";
import {
  type ListCustomPropertyUpdatersRequest,
  ListCustomPropertyUpdatersRequestSchema,
  type ListCustomPropertyUpdatersResponse,
  ListCustomPropertyUpdatersResponseSchema,
} from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { textsOf } from "../db/paging/keyset.ts";
import { pageRequest } from "../db/paging/page-request.ts";
import { toUpdater } from "./messages.ts";
import { propertyUpdaters } from "./tables.ts";

const limitDefault = 50;

/** Updaters by name, page by page. @throws code 3 for a bad cursor. */
export async function listUpdaters(
  db: Db,
  tenantId: string,
  { pageInput }: ListCustomPropertyUpdatersRequest,
): Promise<ListCustomPropertyUpdatersResponse> {
  const schema = ListCustomPropertyUpdatersRequestSchema;
  const page = pageRequest("updaters", tenantId, pageInput, "page_input", schema, create(schema), limitDefault);
  const { name } = propertyUpdaters;
  const [after] = page.after === undefined ? [] : textsOf(page.after, ["text"]);
  const beyond = typeof after !== "string" ? undefined : page.backward ? lt(name, after) : gt(name, after);
  // By property_updaters_name.
  const rows = await orm(db)
    .select()
    .from(propertyUpdaters)
    .where(and(eq(propertyUpdaters.tenantId, tenantId), beyond))
    .orderBy(page.backward ? desc(name) : name)
    .limit(page.limit + 1);
  if (page.backward) rows.reverse();
  const { items, info } = await page.cut(rows, (row) => [row.name], 0n);
  const hasNext = page.backward ? info.hasPrev : info.hasNext;
  const cursor = page.backward ? info.startCursor : info.endCursor;
  return create(ListCustomPropertyUpdatersResponseSchema, {
    updaters: items.map(toUpdater),
    pageInfo: { hasNext, cursor },
  });
}
