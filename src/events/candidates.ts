import type { Fragment } from "postgres";
import type { Checked } from "../clause/checked.ts";
import { byteaArray, int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { tenantApart } from "../db/plans.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { parseId } from "../entities/identity.ts";
import { parseOccurrenceId } from "./occurrence-id.ts";
import type { OccurrenceKey } from "./occurrences.ts";

/** Rows of one table that an index finds, and among whose occurrences are all that a condition asks for. */
export interface CandidateSource {
  table: "entities" | "events" | "occurrences";
  /** The index. Conditions of one index are asked together. */
  index: string;
  /** Over the table's columns by their bare names. */
  condition: Fragment;
}

/** Ids that a clause names, or keys of occurrences. */
interface Named {
  events: readonly Buffer[];
  occurrences: readonly OccurrenceKey[];
}

/** Where the occurrences are that a clause matches: in one source, in any one of several that is chosen, or in all of several together. */
export type Candidates =
  | { kind: "source"; source: CandidateSource }
  | { kind: "named"; named: Named }
  | { kind: "choice" | "union"; of: readonly Candidates[] };

/** Says which candidates satisfy a condition of a clause; undefined: no index finds them. */
export type CandidatesOf = (
  condition: Exclude<Checked, { kind: "and" | "or" | "not" | "ids" }>,
) => Candidates | undefined;

/** Up to so many candidates nothing is better than to look each up. */
const candidatesMax = 1000;
/**
 * Up to the last of these it still is better than to read all that a tenant has, but not than to walk through the newest for a page.
 * In steps, so that what is counted stays in proportion to what is found.
 */
const someCandidatesMax = [6000, 36_000];
/** How many sources are counted; of more, each `and` takes the first one that it has. */
const countedMax = 64;

/** Indexes, by the tables that they are on. */
const tables = {
  entities_terms: "entities",
  entities_text: "entities",
  entities_name: "entities",
  entities_deleted: "entities",
  events_pkey: "events",
  events_entity: "events",
  events_name: "events",
  events_key: "events",
  events_labels: "events",
  occurrences_seen: "occurrences",
  occurrences_end: "occurrences",
  occurrences_open: "occurrences",
  occurrences_terms: "occurrences",
} as const satisfies Record<string, CandidateSource["table"]>;

/** What an index finds by a condition; undefined: there is no such condition. */
export const source = (index: keyof typeof tables, condition: Fragment | undefined): Candidates | undefined =>
  condition && { kind: "source", source: { table: tables[index], index, condition } };

/** Any one of these suffices. */
export function choice(parts: readonly (Candidates | undefined)[]): Candidates | undefined {
  const of = parts.flatMap((part) => (part === undefined ? [] : part.kind === "choice" ? part.of : [part]));
  return of.length > 1 ? { kind: "choice", of } : of[0];
}

/** All of these together; undefined where one is missing. */
export function union(db: Db, parts: readonly (Candidates | undefined)[]): Candidates | undefined {
  if (!parts.every((part) => part !== undefined)) return undefined;
  const all = parts.flatMap((part) => (part.kind === "union" ? part.of : [part]));
  return all.length === 1 ? all[0] : { kind: "union", of: merged(db, all) };
}

/** Makes one source of those of the same index. */
function merged(db: Db, parts: readonly Candidates[]): Candidates[] {
  const byIndex = Map.groupBy(
    parts.flatMap((part) => (part.kind === "source" ? [part.source] : [])),
    ({ index }) => index,
  );
  const sources = [...byIndex.values()].map((sources): Candidates => {
    const conditions = sources.map(({ condition }) => condition);
    return { kind: "source", source: { ...(sources[0] as CandidateSource), condition: sqlJoin(db, conditions, "or") } };
  });
  return [...sources, ...parts.filter(({ kind }) => kind !== "source")];
}

/** Returns where the occurrences are that a clause matches; undefined: any may match. */
export function candidatesOfClause(db: Db, clause: Checked, of: CandidatesOf): Candidates | undefined {
  switch (clause.kind) {
    case "and":
      return choice(clause.parts.map((part) => candidatesOfClause(db, part, of)));
    case "or":
      return union(
        db,
        clause.parts.map((part) => candidatesOfClause(db, part, of)),
      );
    case "not":
      return undefined;
    case "ids":
      return namedBy(clause.ids);
    default:
      return of(clause);
  }
}

function namedBy(ids: readonly string[]): Candidates | undefined {
  if (ids.length > candidatesMax) return undefined;
  return {
    kind: "named",
    named: {
      events: ids.flatMap((id) => parseId(id) ?? []),
      occurrences: ids.flatMap((id) => parseOccurrenceId(id) ?? []),
    },
  };
}

type Leaf = Extract<Candidates, { kind: "source" | "named" }>;

const leavesOf = (candidates: Candidates): Leaf[] =>
  "of" in candidates ? candidates.of.flatMap(leavesOf) : [candidates];

/** Chooses the first of each choice. */
function withoutChoices(db: Db, candidates: Candidates): Candidates | undefined {
  if (candidates.kind === "choice") return candidates.of[0] && withoutChoices(db, candidates.of[0]);
  return candidates.kind === "union"
    ? union(
        db,
        candidates.of.map((part) => withoutChoices(db, part)),
      )
    : candidates;
}

/** What is read of candidates: sources whose occurrences together are those. */
interface Chosen {
  leaves: readonly Leaf[];
  count: number;
}

function chosenOf(candidates: Candidates, counts: ReadonlyMap<Leaf, number>): Chosen {
  switch (candidates.kind) {
    case "choice":
      return candidates.of
        .map((part) => chosenOf(part, counts))
        .reduce((least, each) => (each.count < least.count ? each : least));
    case "union": {
      const parts = candidates.of.map((part) => chosenOf(part, counts));
      return {
        leaves: parts.flatMap(({ leaves }) => leaves),
        count: parts.reduce((sum, { count }) => sum + count, 0),
      };
    }
    default:
      return { leaves: [candidates], count: counts.get(candidates) ?? Number.POSITIVE_INFINITY };
  }
}

/** A query of the keys of candidates, `event_id` and `number`, each once. Within an object, since a statement's part that is returned alone is sent. */
export interface Keys {
  keys: Fragment;
}

/** Counts candidates up to 1,000, and chooses the fewest; undefined: they are more, or not known. */
export async function fewCandidates(
  db: Db,
  tenantId: string,
  candidates: Candidates | undefined,
  signal: AbortSignal | undefined,
): Promise<Keys | undefined> {
  return await counted(db, tenantId, candidates, signal, candidatesMax);
}

/** The same up to 36,000, where they are more than few. */
export async function someCandidates(...input: Parameters<typeof fewCandidates>): Promise<Keys | undefined> {
  for (const most of someCandidatesMax) {
    const keys = await counted(...input, most);
    if (keys !== undefined) return keys;
  }
  return undefined;
}

/** PostgreSQL's guesses decide nothing, so the plan is the same on tables that were never analysed. */
async function counted(
  db: Db,
  tenantId: string,
  candidates: Candidates | undefined,
  signal: AbortSignal | undefined,
  most: number,
): Promise<Keys | undefined> {
  if (candidates === undefined) return undefined;
  const all = leavesOf(candidates).length > countedMax ? withoutChoices(db, candidates) : candidates;
  const leaves = all === undefined ? [] : leavesOf(all);
  if (all === undefined || leaves.length > countedMax) return undefined;
  const counts = leaves.map((leaf) => db`(${countOf(db, tenantId, leaf, most + 1)})`);
  const [row] = await cancelOn(
    db<[{ counts: number[] }]>`select array[${sqlJoin(db, counts, ",")}]::int4[] as counts`,
    signal,
  );
  const { leaves: chosen, count } = chosenOf(all, new Map(leaves.map((leaf, i) => [leaf, row.counts[i] as number])));
  if (count > most) return undefined;
  const keys = chosen.map((leaf) => keysOf(db, tenantId, leaf));
  return { keys: db`select distinct event_id, number from (${sqlJoin(db, keys, "union all")}) as found` as Fragment };
}

/** The count of a leaf's rows, or of their occurrences where those are more; neither is read beyond one too many. */
function countOf(db: Db, tenantId: string, leaf: Leaf, most: number): Fragment {
  if (leaf.kind === "named" || leaf.source.table === "occurrences")
    return db`select count(*) from (select from (${keysOf(db, tenantId, leaf)}) as keys limit ${most}) as counted` as Fragment;
  const { table, condition } = leaf.source;
  return db`
    with owners as materialized (
      select id from ${db(table)} where ${ofTenant(db, tenantId, leaf.source)} and ${condition} limit ${most}
    )
    select greatest(
      (select count(*) from owners),
      (select count(*) from (
        select from ${occurrencesOf(db, tenantId, table, db`owners` as Fragment)} limit ${most}
      ) as counted)
    )` as Fragment;
}

/** The terms of entities name their tenant; PostgreSQL would read all of its ids beside them. */
const ofTenant = (db: Db, tenantId: string, { index }: CandidateSource): Fragment =>
  index === "entities_terms" ? tenantApart(db, tenantId) : (db`tenant_id = ${tenantId}` as Fragment);

/** The keys of a leaf's occurrences; one may come twice. */
function keysOf(db: Db, tenantId: string, leaf: Leaf): Fragment {
  if (leaf.kind === "named") return keysNamed(db, tenantId, leaf.named);
  const { table, condition } = leaf.source;
  const where = db`${ofTenant(db, tenantId, leaf.source)} and ${condition}`;
  if (table === "occurrences") return db`select event_id, number from occurrences where ${where}` as Fragment;
  const owners = db`(select id from ${db(table)} where ${where} offset 0) as owners` as Fragment;
  return db`select o.event_id, o.number from ${occurrencesOf(db, tenantId, table, owners)}` as Fragment;
}

/** The occurrences of entities or events, each looked up by its key whatever PostgreSQL expects (design/statements). */
function occurrencesOf(db: Db, tenantId: string, table: "entities" | "events", owners: Fragment): Fragment {
  const ofEvent = (id: Fragment) => db`cross join lateral (
      select event_id, number from occurrences where tenant_id = ${tenantId} and event_id = ${id} offset 0
    ) as o`;
  if (table === "events") return db`${owners} ${ofEvent(db`owners.id` as Fragment)}` as Fragment;
  return db`${owners} cross join lateral (
      select id from events where tenant_id = ${tenantId} and entity_id = owners.id offset 0
    ) as e ${ofEvent(db`e.id` as Fragment)}` as Fragment;
}

const keysNamed = (db: Db, tenantId: string, { events, occurrences }: Named): Fragment =>
  db`${keysOfEvents(db, tenantId, events)} union all select event_id, number from ${keyList(db, occurrences)}` as Fragment;

/** The keys of all occurrences of some events. */
export const keysOfEvents = (db: Db, tenantId: string, events: readonly Buffer[]): Fragment =>
  db`select o.event_id, o.number from ${occurrencesOf(
    db,
    tenantId,
    "events",
    db`unnest(${byteaArray(events)}::bytea[]) as owners (id)` as Fragment,
  )}` as Fragment;

/** Keys of occurrences as rows. */
export function keyList(db: Db, keys: readonly OccurrenceKey[]): Fragment {
  return db`unnest(
      ${byteaArray(keys.map(({ eventId }) => eventId))}::bytea[], ${int4Array(keys.map(({ number }) => number))}::int4[]
    ) as named (event_id, number)` as Fragment;
}
