import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { TriggerType } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Keyring } from "../../credentials/keyring.ts";
import { byteaArray, textArray, uuidArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { tenantNameOf } from "../../tenants/tenant.ts";
import type { ThreadState } from "../kinds/attempt-outcome.ts";
import type { ProductAddresses } from "../kinds/stored-credential.ts";
import { type ClaimedDelivery, threadKey } from "../queue/delivery-queue.ts";
import { storedTriggerType } from "../rules/sources.ts";
import { readStoredRules } from "../rules/stored-rules.ts";
import type { TenantRules } from "../rules/tenant-rules.ts";
import type { GroupSnapshot, Notification } from "../subject/notification.ts";
import { readSubjects, type SubjectState } from "../subject/read-subjects.ts";
import { type OpenDestination, unsealDestination } from "./unseal-destination.ts";

/** What earlier deliveries of one destination and subject have left; `match` of the state names the match that began it. */
export interface Thread {
  state: ThreadState;
  /** Whether anything of it ever went out, or may have. */
  sent: boolean;
}

/** What decides whether deliveries are made, and where they go; read of all of them. */
export interface DeliveryFacts {
  readonly tenantName: string;
  /** By id. */
  readonly rules: ReadonlyMap<string, Notification["rule"]>;
  /** With their secrets readable, or why they are not. */
  readonly destinations: ReadonlyMap<string, OpenDestination | Error>;
  /** By `threadKey`. */
  readonly threads: ReadonlyMap<string, Thread>;
  /** The ids of ends after which more of another match waits for the same destination and subject. */
  readonly followed: ReadonlySet<string>;
}

/** What deliveries report beyond what is stored in them. May be long, so it is read of those alone that are made. */
export interface DeliveryTexts {
  readonly triggers: ReadonlyMap<string, TriggerType>;
  /** By `keyText`. */
  readonly subjects: ReadonlyMap<string, SubjectState>;
  /** What messages of groups say, by their ids. */
  readonly groups: ReadonlyMap<string, GroupSnapshot>;
}

/** What destinations are opened with, and what is known of rules. */
export interface Opening {
  readonly keyring: Keyring;
  readonly world: ProductAddresses;
  /** The tenant's rules as this process holds them; undefined: they are read. */
  readonly held: TenantRules | undefined;
}

const each = <T>(values: readonly T[]): T[] => [...new Set(values)];

/**
 * Returns rules by id: from memory, where a rule that notifies no more is none, else by their names, which are their keys; a rule of a name
 * has another id when it was deleted and made again.
 */
async function rulesById(
  tx: Db,
  tenantId: string,
  rows: readonly ClaimedDelivery[],
  held: TenantRules | undefined,
): Promise<Map<string, Notification["rule"]>> {
  const ids = each(rows.map(({ ruleId }) => ruleId));
  const found = new Map(
    ids.flatMap((id) => {
      const rule = held?.byId.get(id);
      return rule === undefined ? [] : [[id, rule.shown] as const];
    }),
  );
  const missing = rows.filter(({ ruleId }) => !found.has(ruleId));
  if (missing.length === 0) return found;
  const names = each(missing.map(({ ruleName }) => ruleName));
  const which = tx`r.name = any(${textArray(names)}::text[]) and r.id = any(${uuidArray(ids)}::uuid[])`;
  for (const rule of await readStoredRules(tx, tenantId, which)) found.set(rule.id, rule);
  return found;
}

/** Returns the types of triggers by name, of which memory has those of rules that notify. */
async function triggerTypes(
  tx: Db,
  tenantId: string,
  names: readonly string[],
  held: TenantRules | undefined,
): Promise<Map<string, TriggerType>> {
  const found = new Map(
    names.flatMap((name) => {
      const trigger = held?.triggers.get(name);
      return trigger === undefined ? [] : [[name, trigger.type] as const];
    }),
  );
  // A rule's own condition has no name.
  const missing = names.filter((name) => name !== "" && !found.has(name));
  if (missing.length === 0) return found;
  const stored = await tx<{ name: string; type: JsonValue }[]>`
    select name, type from triggers where tenant_id = ${tenantId} and name = any(${textArray(missing)}::text[])`;
  for (const { name, type } of stored) found.set(name, storedTriggerType(type));
  return found;
}

function readGroupMessages(tx: Db, tenantId: string, rows: readonly ClaimedDelivery[]) {
  const ids = each(rows.flatMap(({ told }) => told.group?.message ?? []));
  if (ids.length === 0) return [];
  return tx<{ id: string; told: GroupSnapshot }[]>`
    select id, told from group_messages where tenant_id = ${tenantId} and id = any(${uuidArray(ids)}::uuid[])`;
}

/** Names the thread that a delivery belongs to. */
export const threadKeyOf = ({ destinationName, subject }: Pick<ClaimedDelivery, "destinationName" | "subject">) =>
  threadKey(destinationName, subject.key);

function readThreads(tx: Db, tenantId: string, rows: readonly ClaimedDelivery[]) {
  const byKey = [...new Map(rows.map((row) => [threadKeyOf(row), row])).values()];
  return tx<(Thread & { destinationName: string; subject: Buffer })[]>`
    select t.destination_name as "destinationName", t.subject, t.state, t.sent
    from unnest(
      ${textArray(byKey.map(({ destinationName }) => destinationName))}::text[],
      ${byteaArray(byKey.map(({ subject }) => subject.key))}::bytea[]
    ) as asked (destination_name, subject)
      cross join lateral (
        select * from delivery_threads
        where tenant_id = ${tenantId} and destination_name = asked.destination_name and subject = asked.subject offset 0
      ) as t`;
}

/** By due_deliveries_by_age. */
function readFollowed(tx: Db, tenantId: string, rows: readonly ClaimedDelivery[]) {
  const ids = rows.flatMap(({ occasion, id }) => (occasion === "clear" ? [id] : []));
  if (ids.length === 0) return [];
  return tx<{ id: string }[]>`
    select d.id from due_deliveries d
    where d.tenant_id = ${tenantId} and d.id = any(${uuidArray(ids)}::uuid[]) and (
      select (array_agg(e.occasion order by e.created_ms, e.id))[1] from due_deliveries e
      where e.tenant_id = ${tenantId} and e.destination_name = d.destination_name and e.subject = d.subject
        and e.created_ms >= 0 and (e.created_ms, e.id) > (d.created_ms, d.id)) <> 'first'`;
}

/** The types of destinations as senders take them. What cannot be opened hinders its own deliveries alone. */
async function readDestinations(tx: Db, tenantId: string, names: readonly string[], { keyring, world }: Opening) {
  const stored = await tx<{ name: string; type: JsonValue }[]>`
    select name, type from destinations where tenant_id = ${tenantId} and name = any(${textArray(names)}::text[])`;
  const opened = stored.map(async ({ name, type }): Promise<[string, OpenDestination | Error]> => {
    try {
      const masked = fromJson(DestinationTypeSchema, type);
      return [name, await unsealDestination(tx, tenantId, name, masked, keyring, world, "destination.type")];
    } catch (error) {
      // What the database says is no matter of the destination.
      if ((error as { severity?: unknown }).severity !== undefined) throw error;
      return [name, error as Error];
    }
  });
  return new Map(await Promise.all(opened));
}

/** Reads what decides about these deliveries of one tenant, in statements that go to the database together. */
export async function readDeliveryFacts(
  tx: Db,
  tenantId: string,
  rows: readonly ClaimedDelivery[],
  opening: Opening,
): Promise<DeliveryFacts> {
  const { held } = opening;
  const [tenantName, rules, destinations, threads, followed] = await Promise.all([
    held?.tenantName ?? tenantNameOf(tx, tenantId),
    rulesById(tx, tenantId, rows, held),
    readDestinations(tx, tenantId, each(rows.map(({ destinationName }) => destinationName)), opening),
    readThreads(tx, tenantId, rows),
    readFollowed(tx, tenantId, rows),
  ]);
  return {
    tenantName,
    rules,
    destinations,
    threads: new Map(
      threads.map(({ destinationName, subject, ...thread }) => [threadKey(destinationName, subject), thread]),
    ),
    followed: new Set(followed.map(({ id }) => id)),
  };
}

/** Reads what these deliveries of one tenant report: what is absent of it does not exist. */
export async function readDeliveryTexts(
  tx: Db,
  tenantId: string,
  rows: readonly ClaimedDelivery[],
  held: TenantRules | undefined,
): Promise<DeliveryTexts> {
  const names = each(rows.flatMap(({ triggerNames }) => triggerNames[0] ?? []));
  const [triggers, subjects, groups] = await Promise.all([
    triggerTypes(tx, tenantId, names, held),
    readSubjects(
      tx,
      tenantId,
      rows.map(({ subject }) => subject),
    ),
    readGroupMessages(tx, tenantId, rows),
  ]);
  return {
    groups: new Map(groups.map(({ id, told }) => [id, told])),
    triggers,
    subjects,
  };
}
