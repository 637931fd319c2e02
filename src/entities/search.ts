import { create } from "@bufbuild/protobuf";
import {
  EntitySearchSchema,
  type SearchEntitiesRequest,
  type SearchEntitiesResponse,
  SearchEntitiesResponseSchema,
} from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { toSql } from "../clause/to-sql.ts";
import { cancelOn } from "../db/cancel.ts";
import type { Db } from "../db/connect.ts";
import { beyond, keyTexts, orderBy, type SortKey } from "../db/keyset.ts";
import { pageRequest } from "../db/page-request.ts";
import { invalidField, unsupported } from "../errors.ts";
import { entityResolver } from "./fields.ts";
import { type EntityRow, toEntity } from "./messages.ts";

interface PageRow extends EntityRow {
  key_texts: (string | null)[];
}

/** Living entities that a clause matches, by name and id; pages and totals as in every search. */
export async function searchEntities(
  db: Db,
  tenant: { id: string; name: string },
  request: SearchEntitiesRequest,
  signal: AbortSignal,
): Promise<SearchEntitiesResponse> {
  const search = request.searchInput ?? create(EntitySearchSchema);
  const path = "search_input";
  const clause = search.query?.clause;
  if (clause === undefined) throw invalidField(`${path}.query.clause`, "is required");
  if (search.sortby.length > 0) throw unsupported(`${path}.sortby: sorting is not served yet`);
  if (search.groupBy.length > 0) throw unsupported(`${path}.group_by: grouping is not served yet`);
  if (request.fields.length > 0) throw unsupported("fields: choosing fields is not served yet");
  const page = pageRequest("entities", tenant.id, search.pageInput, `${path}.page_input`, EntitySearchSchema, {
    ...search,
    pageInput: undefined,
  });
  const keys: SortKey[] = [
    { expression: db`name`, type: "text", descending: false },
    { expression: db`id`, type: "bytea", descending: false },
  ];
  const living = db`tenant_id = ${tenant.id} and deleted_ms is null
    and ${toSql(db, clause, `${path}.query.clause`, entityResolver(db))}`;
  // By entities_dimensions, entities_name or the primary key, whichever the clause rests on.
  const rowsRead = db<PageRow[]>`
    select id, name, dimensions, metadata, model_ms, created_ms, updated_ms, liveness_ms, ${keyTexts(db, keys)} as key_texts
    from entities
    where ${living} and ${page.keys === undefined ? db`true` : beyond(db, keys, page.keys, page.backward)}
    order by ${orderBy(db, keys, page.backward)} limit ${page.limit + 1}`;
  const totalRead = db<{ total: bigint }[]>`select count(*) as total from entities where ${living}`;
  const [rows, [counted]] = await Promise.all([cancelOn(rowsRead, signal), cancelOn(totalRead, signal)]);
  const ordered = page.backward ? rows.toReversed() : rows;
  const { items, info } = page.cut(ordered, ({ key_texts }) => key_texts, counted?.total ?? 0n);
  return create(SearchEntitiesResponseSchema, {
    entities: { entities: items.map((row) => toEntity(row, tenant)) },
    pageInfo: info,
  });
}
