import type { Message } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { and, eq, gt, sql } from "drizzle-orm";
import type { EntityField } from "#gen/belfry/dictionary/v1/entity_field_pb.ts";
import type { MetricEntry } from "#gen/belfry/dictionary/v1/metric_entry_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { keyTextsOf } from "../db/paging/keyset.ts";
import { countedPage } from "../db/paging/token-page.ts";
import { alreadyExists, invalidField, notFound } from "../errors.ts";
import { changedFields } from "../rpc/update-mask.ts";
import { type EntryKind, entityFields, metrics } from "./kinds.ts";
import { effective, type Layering, mergeLayers } from "./layers.ts";
import { dictionaryEntries } from "./tables.ts";

/** The message of an entry, whatever its kind. */
export type Entry = Message & { name: string };

const layering = <E>(kind: EntryKind<E>, layer: string): Layering<E> => ({
  shipped: kind.shipped,
  own: ({ name, entry }, overridden) => kind.toEntry(name, entry, layer, overridden),
});

// Every statement here goes by the primary key.
const columns = { name: dictionaryEntries.name, entry: dictionaryEntries.entry };
const ofKind = <E>(tenantId: string, { key }: EntryKind<E>) =>
  and(eq(dictionaryEntries.tenantId, tenantId), eq(dictionaryEntries.kind, key));
const named = <E>(tenantId: string, kind: EntryKind<E>, name: string) =>
  and(ofKind(tenantId, kind), eq(dictionaryEntries.name, name));

/** The entry that is in effect for a name; `layer` names the tenant's own. @throws code 5 */
export async function getEntry<E>(
  db: Db,
  tenantId: string,
  kind: EntryKind<E>,
  layer: string,
  name: string,
): Promise<E> {
  const [row] = await orm(db)
    .select(columns)
    .from(dictionaryEntries)
    .where(named(tenantId, kind, name));
  const entry = effective(layering(kind, layer), name, row);
  if (entry === undefined) throw notFound(kind.title, name);
  return entry;
}

/** The entries that are in effect for these names, in their order, each once; names without an entry are left out. */
export async function getEntries<E>(
  db: Db,
  tenantId: string,
  kind: EntryKind<E>,
  layer: string,
  names: readonly string[],
): Promise<E[]> {
  const wanted = sql`${dictionaryEntries.name} = any(${textArray(names)}::text[])`;
  const rows = await orm(db)
    .select(columns)
    .from(dictionaryEntries)
    .where(and(ofKind(tenantId, kind), wanted));
  const own = new Map(rows.map((row) => [row.name, row]));
  return [...new Set(names)].flatMap((name) => effective(layering(kind, layer), name, own.get(name)) ?? []);
}

/** All entries that are in effect, by name. */
export async function allEntries<E>(db: Db, tenantId: string, kind: EntryKind<E>, layer: string): Promise<E[]> {
  const rows = await orm(db)
    .select(columns)
    .from(dictionaryEntries)
    .where(ofKind(tenantId, kind))
    .orderBy(dictionaryEntries.name);
  return mergeLayers(layering(kind, layer), rows);
}

/** The entries that are in effect, by name: all of them, or a page when one is asked for. @throws code 3 for a bad token */
export async function listEntries<E extends Entry>(
  db: Db,
  tenantId: string,
  kind: EntryKind<E>,
  layer: string,
  request: { pageSize: number; pageToken: string },
): Promise<{ entries: E[]; nextPageToken: string; totalCount: bigint }> {
  if (request.pageSize === 0 && request.pageToken === "") {
    const entries = await allEntries(db, tenantId, kind, layer);
    return { entries, nextPageToken: "", totalCount: BigInt(entries.length) };
  }
  const page = countedPage(kind.title, tenantId, request, "");
  const after = (page.after && keyTextsOf(page.after, ["text"])[0]) ?? "";
  const { shipped } = kind;
  const isAdded = sql`${dictionaryEntries.name} <> all(${textArray(shipped.names)}::text[])`;
  async function count() {
    return shipped.names.length + (await orm(db).$count(dictionaryEntries, and(ofKind(tenantId, kind), isAdded)));
  }
  const [rows, total] = await Promise.all([
    orm(db)
      .select(columns)
      .from(dictionaryEntries)
      .where(and(ofKind(tenantId, kind), gt(dictionaryEntries.name, after)))
      .orderBy(dictionaryEntries.name)
      .limit(page.rowsMax ?? Number.MAX_SAFE_INTEGER),
    page.total(count),
  ]);
  const merged = mergeLayers(layering(kind, layer), rows, after, page.rowsMax ?? undefined);
  const { items, nextPageToken } = page.cut(merged, ({ name }) => [name], total);
  return { entries: items, nextPageToken, totalCount: total };
}

/** Creates an entry of the tenant's own, over a default one or not. @throws code 6 */
export async function createEntry<E extends Entry>(
  tx: Db,
  tenantId: string,
  kind: EntryKind<E>,
  layer: string,
  entry: E,
): Promise<E> {
  const { name } = entry;
  const said = saidIn(kind, entry, undefined);
  const { tenantId: tenant, kind: key, name: byName } = dictionaryEntries;
  const made = await orm(tx)
    .insert(dictionaryEntries)
    .values({ tenantId, kind: kind.key, name, entry: said })
    .onConflictDoNothing({ target: [tenant, key, byName] })
    .returning({ name: byName });
  if (made.length === 0) throw alreadyExists(kind.title, name);
  return kind.toEntry(name, said, layer, kind.shipped.get(name));
}

/** Changes those members of an entry of the tenant's own that the mask names. @throws code 3, code 5 */
export async function updateEntry<E extends Entry>(
  tx: Db,
  tenantId: string,
  kind: EntryKind<E>,
  layer: string,
  entry: E,
  mask: FieldMask | undefined,
): Promise<E> {
  const { name } = entry;
  if (name === "") throw invalidField(`${kind.member}.name`, "is required", FieldRule.REQUIRED);
  const [row] = await orm(tx)
    .update(dictionaryEntries)
    .set({ entry: sql`${dictionaryEntries.entry} || ${JSON.stringify(saidIn(kind, entry, mask))}::jsonb` })
    .where(named(tenantId, kind, name))
    .returning(columns);
  if (row === undefined) throw notFound(`own ${kind.title}`, name);
  return kind.toEntry(name, row.entry, layer, kind.shipped.get(name));
}

/** Deletes an entry of the tenant's own; a default one is in effect again. @throws code 5 */
export async function deleteEntry<E>(tx: Db, tenantId: string, kind: EntryKind<E>, name: string): Promise<void> {
  const gone = await orm(tx)
    .delete(dictionaryEntries)
    .where(named(tenantId, kind, name))
    .returning({ name: dictionaryEntries.name });
  if (gone.length === 0) throw notFound(`own ${kind.title}`, name);
}

/** What a request says of an entry, as it is stored: the members that the tenant sets, by their names in TypeScript. */
function saidIn<E extends Entry>(
  { schema }: EntryKind<E>,
  entry: E,
  mask: FieldMask | undefined,
): Record<string, unknown> {
  const changed = [...changedFields(schema, entry, mask)] as (keyof E)[];
  return Object.fromEntries(changed.map((member) => [member, entry[member]]));
}

/** The entries of entity fields that are in effect for a tenant, by name. Names are spelled as in clauses. */
export function effectiveEntityFields(db: Db, tenantId: string): Promise<EntityField[]> {
  return allEntries(db, tenantId, entityFields, "TENANT");
}

/** The entries of these metrics that are in effect for a tenant, by their names; the layer of its own ones is TENANT. */
export async function effectiveMetrics(
  db: Db,
  tenantId: string,
  names: readonly string[],
): Promise<Map<string, MetricEntry>> {
  const entries = await getEntries(db, tenantId, metrics, "TENANT", names);
  return new Map(entries.map((entry) => [entry.name, entry]));
}
