import { create } from "@bufbuild/protobuf";
import type { Fragment } from "postgres";
import {
  EntitySearchSchema,
  type SearchEntitiesRequest,
  type SearchEntitiesResponse,
  SearchEntitiesResponseSchema,
} from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { checkClause } from "../clause/check.ts";
import { askedOf, type Checked } from "../clause/checked.ts";
import { fieldDoubt } from "../clause/field-doubt.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { beyond, keyTexts, orderBy, type SortKey } from "../db/paging/keyset.ts";
import { type Outlined, outlineColumns, type PageContents, withContents } from "../db/paging/page-contents.ts";
import { type PageRequest, pageRequest } from "../db/paging/page-request.ts";
import { invalidField } from "../errors.ts";
import { turnAfter } from "../event-loop.ts";
import { columnNames } from "./columns.ts";
import { metadataKeys } from "./field-keys.ts";
import { entityResolver, fieldKey } from "./fields.ts";
import { groupEntities } from "./group.ts";
import { type MatchingEntities, matchingEntities } from "./matching.ts";
import { type EntityRow, toEntity } from "./messages.ts";
import { sortKeys } from "./sort.ts";

const path = "search_input";

type PageRow = PageEntityRow & { key_texts: (string | null)[] };

/** The keys without a prefix that a clause asks for: those of metadata of the tenant; the others are dimensions. */
export function bareKeys(clause: Checked): string[] {
  const keys = askedOf(clause).map(({ field }) => field);
  return keys.filter((key) => fieldKey(key).kind === "bare");
}

const place = (db: Db, keys: readonly SortKey[], page: PageRequest) =>
  page.after === undefined ? db`true` : beyond(db, keys, page.after, page.backward);

/** Rows of a page and one more, and how many match in all. */
interface PageAndTotal {
  rows: PageRow[];
  total: bigint;
}

/** As readFew, on a page whose cursor brings the total: only what lies beyond it is put in order. */
async function readFewBeyond(
  db: Db,
  tenantId: string,
  { from, sql }: MatchingEntities,
  keys: readonly SortKey[],
  page: PageRequest,
  signal: AbortSignal,
): Promise<PageRow[]> {
  const found = keys.map((key, i) => ({ ...key, expression: db`${db(`key_${i}`)}` }));
  const values = keys.map(({ expression }, i) => db`, ${expression} as ${db(`key_${i}`)}`);
  const order = orderBy(db, found, page.backward);
  return await cancelOn(
    db<PageRow[]>`
      with matching as materialized (
        select entities.id as entity_id ${values} from ${from} where ${sql} and ${place(db, keys, page)}
      ), page as (select * from matching order by ${order} limit ${page.limit + 1})
      select ${pageColumns(db)}, ${keyTexts(db, found)} as key_texts
      from page cross join lateral (
        select * from entities where tenant_id = ${tenantId} and id = page.entity_id limit 1) as entities
      order by ${order}`,
    signal,
  );
}

/**
 * By entities_terms, entities_text or an index on ids, on which the clause rests: the matches are found once, to be counted
 * and put in order. PostgreSQL must not hope to meet them early on a walk along entities_name.
 */
async function readFew(
  db: Db,
  tenantId: string,
  { from, sql }: MatchingEntities,
  keys: readonly SortKey[],
  page: PageRequest,
  signal: AbortSignal,
): Promise<PageAndTotal> {
  if (page.counted !== undefined) {
    return {
      rows: await readFewBeyond(db, tenantId, { from, sql, few: true }, keys, page, signal),
      total: page.counted,
    };
  }
  const found = keys.map((key, i) => ({ ...key, expression: db`${db(`key_${i}`)}` }));
  const values = keys.map(({ expression }, i) => db`, ${expression} as ${db(`key_${i}`)}`);
  const order = orderBy(db, found, page.backward);
  const rows = await cancelOn(
    db<(PageRow & { total: bigint })[]>`
      with matching as materialized (select entities.id as entity_id ${values} from ${from} where ${sql}),
      page as (select * from matching order by ${order} limit ${page.limit + 1})
      select ${pageColumns(db)}, ${keyTexts(db, found)} as key_texts, total
      from (select count(*) as total from matching) as counted left join page on true
        left join lateral (
          select * from entities where tenant_id = ${tenantId} and id = page.entity_id limit 1) as entities on true
      order by ${order}`,
    signal,
  );
  // A page without rows is one row without an id, for the total.
  return { rows: rows.filter(({ id }) => id !== null), total: rows[0]?.total ?? 0n };
}

/**
 * In the order of entities_name, or all of them. Those of a first page that is not full need not be counted, nor those
 * that an earlier page has counted within its time: else reading all pages would count all rows once a page.
 */
async function readMany(
  db: Db,
  { from, sql }: MatchingEntities,
  keys: readonly SortKey[],
  page: PageRequest,
  signal: AbortSignal,
): Promise<PageAndTotal> {
  const read = () =>
    cancelOn(
      db<PageRow[]>`
        select ${pageColumns(db)}, ${keyTexts(db, keys)} as key_texts from ${from}
        where ${sql} and ${place(db, keys, page)}
        order by ${orderBy(db, keys, page.backward)} limit ${page.limit + 1}`,
      signal,
    );
  const count = () => cancelOn(db<[{ total: bigint }]>`select count(*) as total from ${from} where ${sql}`, signal);
  const rows = await read();
  if (page.counted !== undefined) return { rows, total: page.counted };
  return { rows, total: rows.length > page.limit ? (await count())[0].total : BigInt(rows.length) };
}

async function readPageAndTotal(
  db: Db,
  tenantId: string,
  matching: MatchingEntities,
  keys: readonly SortKey[],
  page: PageRequest,
  signal: AbortSignal,
) {
  const { rows, total } = matching.few
    ? await readFew(db, tenantId, matching, keys, page, signal)
    : await readMany(db, matching, keys, page, signal);
  const whole = await wholeEntities(db, tenantId, rows, page.limit, signal);
  return { rows: page.backward ? whole.rows.toReversed() : whole.rows, count: whole.count, total };
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
  if (clause === undefined) throw invalidField(`${path}.query.clause`, "is required", FieldRule.REQUIRED);
  const page = pageRequest("entities", tenant.id, search.pageInput, `${path}.page_input`, EntitySearchSchema, {
    ...search,
    pageInput: undefined,
  });
  const checked = checkClause(clause, `${path}.query.clause`);
  const bare = bareKeys(checked);
  const known = entityResolver(tenant.id, {
    tenantName: tenant.name,
    metadataKeys: await metadataKeys(db, tenant.id, bare),
  });
  const beganMs = performance.now();
  const matching = matchingEntities(db, tenant.id, checked, known);
  // To write 100,000 ids takes 150 ms, to send them 40 to 120: not in one turn.
  await turnAfter(beganMs);
  // What is sorted by is in cursors, so it does not depend on the keys that are known today.
  const resolver = entityResolver(tenant.id, { tenantName: tenant.name });
  const keys = sortKeys(db, search.sortby, resolver);
  const grouped = search.groupBy.map(({ field }) => field);
  const [{ rows, count, total }, groups] = await Promise.all([
    readPageAndTotal(db, tenant.id, matching, keys, page, signal),
    // Of the first page alone, as the total.
    grouped.length === 0 || page.after !== undefined
      ? []
      : groupEntities(db, matching, grouped, resolver, `${path}.group_by`, signal),
  ]);
  const { items, info } = await page.cut(rows, ({ key_texts }) => key_texts, total, count);
  const chosen = request.fields.map((key) => [key, resolver.field(key)] as const);
  return create(SearchEntitiesResponseSchema, {
    entities: { entities: items.map((row) => toEntity(row, tenant, chosen)), groups },
    pageInfo: info,
    hint: fieldDoubt(bare, columnNames),
  });
}

const contents: PageContents<"dimensions" | "metadata" | "custom_properties"> = {
  table: "entities",
  id: "bytea",
  columns: { dimensions: "dimensions", metadata: "metadata", custom_properties: "custom_properties" },
};

const emptied = { dimensions: {}, metadata: {}, custom_properties: {} };

/** A row of a page, without its contents where they are large. */
export type PageEntityRow = Outlined<EntityRow>;

/** The columns of a `PageEntityRow`. */
export function pageColumns(db: Db): Fragment {
  return db`id, name, ${outlineColumns(db, contents)}, model_production_state, window_production_state, priority,
    model_ms, created_ms, updated_ms, liveness_ms`;
}

/** The entities of a page, as many as fit into an answer: see `withContents`. */
export function wholeEntities<R extends PageEntityRow>(
  db: Db,
  tenantId: string,
  rows: readonly R[],
  limit: number,
  signal: AbortSignal,
): Promise<{ rows: R[]; count: number }> {
  return withContents<keyof typeof emptied, R>(db, tenantId, contents, rows, { limit, gone: emptied, signal });
}
