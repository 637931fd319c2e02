import { create } from "@bufbuild/protobuf";
import type { Fragment } from "postgres";
import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import {
  EntitySearchSchema,
  type SearchEntitiesRequest,
  type SearchEntitiesResponse,
  SearchEntitiesResponseSchema,
} from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { checkClause } from "../clause/check.ts";
import { clauseKeys } from "../clause/keys.ts";
import { toSqlAndFew } from "../clause/to-sql.ts";
import { cancelOn } from "../db/cancel.ts";
import type { Db } from "../db/connect.ts";
import { beyond, keyTexts, orderBy, type SortKey } from "../db/keyset.ts";
import { type PageRequest, pageRequest } from "../db/page-request.ts";
import { invalidField } from "../errors.ts";
import { entityResolver, fieldKey } from "./fields.ts";
import { groupEntities } from "./group.ts";
import { metadataKeys } from "./keys.ts";
import { type EntityRow, toEntity } from "./messages.ts";
import { sortKeys } from "./sort.ts";

const path = "search_input";

/** SQL that holds for the matches, and whether an index finds them, few as a rule. */
interface Matching {
  sql: Fragment;
  few: boolean;
}

interface PageRow extends EntityRow {
  key_texts: (string | null)[];
}

/** The keys without a prefix that metadata of the tenant have: the others are dimensions. */
function knownKeys(db: Db, tenantId: string, clause: Clause) {
  const bare = clauseKeys(clause).filter((key) => fieldKey(key).kind === "bare");
  return metadataKeys(db, tenantId, bare);
}

/** The rows of a page and one more, in the order of the list. */
async function readPage(
  db: Db,
  { sql, few }: Matching,
  keys: readonly SortKey[],
  page: PageRequest,
  signal: AbortSignal,
) {
  const after = page.keys === undefined ? db`true` : beyond(db, keys, page.keys, page.backward);
  // With "offset 0" PostgreSQL does not hope to meet rows early that are few, on a walk along entities_name.
  // By entities_terms, entities_text, entities_name_text or the primary key where the clause rests on them, else in the
  // order of entities_name.
  const rows = await cancelOn(
    db<PageRow[]>`
      select id, name, dimensions, metadata, custom_properties, model_ms, created_ms, updated_ms, liveness_ms,
        ${keyTexts(db, keys)} as key_texts
      from (select * from entities where ${sql} ${few ? db`offset 0` : db``}) as matching
      where ${after}
      order by ${orderBy(db, keys, page.backward)} limit ${page.limit + 1}`,
    signal,
  );
  return page.backward ? rows.toReversed() : rows;
}

async function count(db: Db, { sql }: Matching, signal: AbortSignal): Promise<bigint> {
  const [row] = await cancelOn(db<[{ total: bigint }]>`select count(*) as total from entities where ${sql}`, signal);
  return row.total;
}

/** The page, and how many match in all: those of a first page that is not full need not be counted. */
async function readPageAndTotal(
  db: Db,
  matching: Matching,
  keys: readonly SortKey[],
  page: PageRequest,
  signal: AbortSignal,
) {
  if (page.keys !== undefined) {
    const [rows, total] = await Promise.all([readPage(db, matching, keys, page, signal), count(db, matching, signal)]);
    return { rows, total };
  }
  const rows = await readPage(db, matching, keys, page, signal);
  return { rows, total: rows.length > page.limit ? await count(db, matching, signal) : BigInt(rows.length) };
}

/** Living entities that a clause matches, page by page in the order that is asked for, else by name and id. */
export async function searchEntities(
  db: Db,
  tenant: { id: string; name: string },
  request: SearchEntitiesRequest,
  signal: AbortSignal,
): Promise<SearchEntitiesResponse> {
  const search = request.searchInput ?? create(EntitySearchSchema);
  const clause = search.query?.clause;
  if (clause === undefined) throw invalidField(`${path}.query.clause`, "is required");
  const page = pageRequest("entities", tenant.id, search.pageInput, `${path}.page_input`, EntitySearchSchema, {
    ...search,
    pageInput: undefined,
  });
  checkClause(clause, `${path}.query.clause`);
  const known = { tenantName: tenant.name, metadataKeys: await knownKeys(db, tenant.id, clause) };
  const compiled = toSqlAndFew(db, clause, `${path}.query.clause`, entityResolver(db, tenant.id, known));
  const sql = db`tenant_id = ${tenant.id} and deleted_ms is null and ${compiled.sql}`;
  const matching: Matching = { sql, few: compiled.few };
  // What is sorted by stands in cursors, so it does not depend on the keys that are known today.
  const resolver = entityResolver(db, tenant.id, { tenantName: tenant.name });
  const keys = sortKeys(db, search.sortby, resolver);
  const grouped = search.groupBy.map(({ field }) => field);
  const [{ rows, total }, groups] = await Promise.all([
    readPageAndTotal(db, matching, keys, page, signal),
    grouped.length === 0 ? [] : groupEntities(db, sql, grouped, resolver, `${path}.group_by`, signal),
  ]);
  const { items, info } = page.cut(rows, ({ key_texts }) => key_texts, total);
  const chosen = request.fields.map((key) => [key, resolver.field(key)] as const);
  return create(SearchEntitiesResponseSchema, {
    entities: { entities: items.map((row) => toEntity(row, tenant, chosen)), groups },
    pageInfo: info,
  });
}
