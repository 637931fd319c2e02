import { randomUUID } from "node:crypto";
import { and, eq, gt, lte, or, sql } from "drizzle-orm";
import { ErrorReason, FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { allMatch, matcherText, readMatchers } from "../../clause/label-matcher.ts";
import { type QuotaBounds, tooLarge } from "../../db/admission-quota.ts";
import { textArray, uuidArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { unknownNames } from "../../db/held-names.ts";
import { orm } from "../../db/orm.ts";
import { addToTotal, type Total } from "../../db/running-total.ts";
import { exhausted, failedPrecondition, invalidField, invalidFields, notFound } from "../../errors.ts";
import { unpaced } from "../../event-loop.ts";
import { normalizedName } from "../../rpc/name-rules.ts";
import type { Hold } from "../subject/notice.ts";
import { releaseHeld } from "./release.ts";
import { raiseRulesVersion } from "./rules-version.ts";
import { covers, isActive } from "./silences-in-force.ts";
import { silences } from "./tables.ts";

/** A silence as it is stored. */
export type StoredSilence = typeof silences.$inferSelect;

/** A silence as somebody wants it. Times are ms since the epoch. */
export interface WantedSilence {
  /** As they were sent. */
  readonly matchers: readonly string[];
  /** Undefined: now, or when it began. */
  readonly startsMs: number | undefined;
  /** Undefined: until what it matches has ended. */
  readonly endsMs: number | undefined;
  readonly ruleNames: readonly string[];
  readonly destinationNames: readonly string[];
  readonly comment: string;
  readonly createdBy: string;
}

/** Whose key writes a silence. */
export type SilenceAuthor = Pick<StoredSilence, "clientId" | "clientName" | "keyPrefix">;

/** How many silences of a tenant may not have ended. */
const silencesMax = 10_000;

export type SilenceState = "PENDING" | "ACTIVE" | "EXPIRED";

/** Tells how a silence stands. */
export function stateOf({ startsMs, endsMs }: Pick<StoredSilence, "startsMs" | "endsMs">, nowMs: number): SilenceState {
  if (endsMs !== null && endsMs <= nowMs) return "EXPIRED";
  return startsMs > nowMs ? "PENDING" : "ACTIVE";
}

/** The matchers of a silence, read. @param path their place in the request, for errors @throws code 3 */
export function readSilenceMatchers(texts: readonly string[], path: string) {
  const matchers = readMatchers(texts, path);
  if (matchers.length === 0) throw invalidField(path, "must hold at least one matcher", FieldRule.REQUIRED);
  // Else it would match what has none of its labels, and so nearly everything.
  if (allMatch(matchers, () => "", unpaced) === true)
    throw invalidField(path, "must hold at least one matcher that does not match the empty text", FieldRule.CONDITION);
  return matchers;
}

/** Checks what the proto cannot express. `at` names the silence in the request, for errors. */
function checkWanted(wanted: WantedSilence, nowMs: number, at: string) {
  const matchers = readSilenceMatchers(wanted.matchers, `${at}matchers`);
  if (wanted.comment === "") throw invalidField(`${at}comment`, "is required", FieldRule.REQUIRED);
  const { endsMs, startsMs } = wanted;
  if (endsMs !== undefined && endsMs <= Math.max(nowMs, startsMs ?? 0))
    throw invalidField(`${at}endsAt`, "must be after startsAt, and after now", FieldRule.RANGE);
  const canonical = matchers.map(matcherText);
  return {
    matchers: [...wanted.matchers],
    parts: matchers.map(({ name, operator, value }) => ({ name, operator, value })),
    canonical,
    ruleNames: [...new Set(wanted.ruleNames.map(normalizedName))],
    destinationNames: [...new Set(wanted.destinationNames.map(normalizedName))],
    endsMs: endsMs === undefined ? null : BigInt(endsMs),
    untilResolved: endsMs === undefined,
    comment: wanted.comment,
    createdBy: wanted.createdBy,
  };
}

type Checked = ReturnType<typeof checkWanted>;

/** What is written with a silence, and where its mistakes are. */
export interface SilenceWrite {
  readonly author: SilenceAuthor;
  readonly nowMs: number;
  readonly bounds: QuotaBounds;
  /** Names the silence in the request, for errors. */
  readonly at: string;
  /** Names that need not be there. */
  readonly known?: Scope;
}

/** A silence that was written, and the identifiers of all that changed with it or were replaced by it. */
export interface WrittenSilence {
  readonly silence: StoredSilence;
  readonly changed: readonly string[];
}

type Scope = Pick<StoredSilence, "ruleNames" | "destinationNames">;

/** Creates a silence. @throws code 3, code 8 for one too many, code 9 for too much text */
export async function createSilence(
  tx: Db,
  tenantId: string,
  wanted: WantedSilence,
  write: SilenceWrite,
): Promise<WrittenSilence> {
  const { author, nowMs, at, known } = write;
  const checked = checkWanted(wanted, nowMs, at);
  await checkScope(tx, tenantId, checked, at, known);
  const startsMs = BigInt(Math.max(nowMs, wanted.startsMs ?? 0));
  const [row] = await orm(tx)
    .insert(silences)
    .values({
      tenantId,
      id: randomUUID(),
      ...checked,
      startsMs,
      judged: false,
      ...author,
      createdMs: BigInt(nowMs),
      updatedMs: BigInt(nowMs),
    })
    .returning();
  const silence = row as StoredSilence;
  await checkBounds(tx, tenantId, silence.id, write);
  return { silence, changed: [silence.id] };
}

/**
 * Replaces a silence: in place where it stays the same one, else the old one ends and a new one begins.
 * @param again whether one that has ended begins anew, as Alertmanager has it
 * @param keepsScope whether the rules and destinations of the old one stay
 * @throws code 3, 5, 8; code 9 for one that has ended
 */
export async function replaceSilence(
  tx: Db,
  tenantId: string,
  id: string,
  sent: WantedSilence,
  { again, keepsScope = false, ...writing }: SilenceWrite & { again: boolean; keepsScope?: boolean },
): Promise<WrittenSilence> {
  const { nowMs, author, at } = writing;
  const old = await lockSilence(tx, tenantId, id);
  const { ruleNames, destinationNames } = old;
  const wanted = keepsScope ? { ...sent, ruleNames, destinationNames } : sent;
  // A name that was known once may be kept: it holds nothing more.
  const write = { ...writing, known: { ruleNames, destinationNames } };
  const state = stateOf(old, nowMs);
  if (state === "EXPIRED") {
    if (!again) throw failedPrecondition(`silence "${id}" has expired: create another one`);
    const { silence } = await createSilence(tx, tenantId, wanted, write);
    return { silence, changed: [old.id, silence.id] };
  }
  const startsMs = wanted.startsMs ?? Number(old.startsMs);
  const checked = checkWanted({ ...wanted, startsMs }, nowMs, at);
  if (!staysSame(old, checked, startsMs, state, nowMs)) {
    // First, so that the new one has its place among as many as may be.
    await endSilences(tx, tenantId, [old], nowMs);
    const { silence } = await createSilence(tx, tenantId, { ...wanted, startsMs }, write);
    return { silence, changed: [old.id, silence.id] };
  }
  await checkScope(tx, tenantId, checked, at, write.known);
  const heldBefore = await held(tx, tenantId, nowMs, old.id);
  const [row] = await orm(tx)
    .update(silences)
    .set({
      ...checked,
      startsMs: state === "ACTIVE" ? old.startsMs : BigInt(startsMs),
      judged: old.judged && checked.untilResolved,
      ...author,
      updatedMs: BigInt(nowMs),
    })
    .where(named(tenantId, old.id))
    .returning();
  await releaseHeld(tx, tenantId, [old.id], nowMs);
  await checkBounds(tx, tenantId, old.id, write, heldBefore);
  return { silence: row as StoredSilence, changed: [old.id] };
}

function staysSame(old: StoredSilence, { canonical }: Checked, startsMs: number, state: SilenceState, nowMs: number) {
  const [before, after] = [new Set(old.canonical), new Set(canonical)];
  if (before.size !== after.size || [...before].some((text) => !after.has(text))) return false;
  const second = (ms: number) => Math.floor(ms / 1000);
  return state === "ACTIVE" ? second(startsMs) === second(Number(old.startsMs)) : startsMs >= nowMs;
}

/** Ends a silence; one that has ended is answered as it is. @throws code 5 */
export async function expireSilence(tx: Db, tenantId: string, id: string, nowMs: number): Promise<WrittenSilence> {
  const old = await lockSilence(tx, tenantId, id);
  if (stateOf(old, nowMs) === "EXPIRED") return { silence: old, changed: [] };
  const [silence] = await endSilences(tx, tenantId, [old], nowMs);
  return { silence: silence as StoredSilence, changed: [old.id] };
}

/** Ends silences that their caller has locked, and has what they hold looked at again. Returns them as they are then. */
export async function endSilences(
  tx: Db,
  tenantId: string,
  olds: readonly StoredSilence[],
  nowMs: number,
): Promise<StoredSilence[]> {
  const now = BigInt(nowMs);
  const ended: StoredSilence[] = [];
  for (const old of olds) {
    const startsMs = old.startsMs > now ? now : old.startsMs;
    const rows = await orm(tx)
      .update(silences)
      .set({ startsMs, endsMs: now, updatedMs: now })
      .where(named(tenantId, old.id))
      .returning();
    ended.push(...rows);
    await tx`delete from silence_subjects where tenant_id = ${tenantId} and silence_id = ${old.id}`;
  }
  await releaseHeld(
    tx,
    tenantId,
    olds.map(({ id }) => id),
    nowMs,
  );
  return ended;
}

/** Has all servers take up changes of silences; the last statements of their transaction. */
export async function announceSilences(tx: Db, tenantId: string, ids: readonly string[]): Promise<void> {
  for (const name of ids) await raiseRulesVersion(tx, tenantId, { kind: "silence", name });
}

/** Returns until when, ms, a silence holds a rule's notification to a destination. */
export type HeldUntil = (hold: Hold, ruleName: string, destinationName: string) => number;

/**
 * Locks silences before rows that they hold are stored: a change of one waits for the commit, and then finds the rows. What changed before
 * the lock counts: a row that its silence no longer holds is due now, and is judged again. Before rows of due_deliveries are locked.
 */
export async function shareSilences(
  tx: Db,
  tenantId: string,
  holds: readonly Hold[],
  nowMs: number,
): Promise<HeldUntil> {
  const ids = [...new Set(holds.map(({ silenceId }) => silenceId))];
  const rows =
    ids.length === 0
      ? []
      : await tx<{ id: string; startsMs: number; endsMs: number; ruleNames: string[]; destinationNames: string[] }[]>`
          select id, starts_ms::float8 as "startsMs", coalesce(ends_ms, 'infinity'::float8) as "endsMs",
            rule_names as "ruleNames", destination_names as "destinationNames"
          from silences where tenant_id = ${tenantId} and id = any(${uuidArray(ids)}::uuid[])
          order by id for share`;
  const byId = new Map(
    rows.map(({ id, ruleNames, destinationNames, ...time }) => [
      id,
      { ...time, ruleNames: new Set(ruleNames), destinationNames: new Set(destinationNames) },
    ]),
  );
  return ({ silenceId, untilMs }, ruleName, destinationName) => {
    const silence = byId.get(silenceId);
    const holds = silence !== undefined && isActive(silence, nowMs) && covers(silence, ruleName, destinationName);
    return holds ? Math.min(untilMs, silence.endsMs) : nowMs;
  };
}

const named = (tenantId: string, id: string) => and(eq(silences.tenantId, tenantId), eq(silences.id, id));

const uuidForm = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Tells whether a text is the form of a silence's identifier. */
export const isSilenceId = (text: string) => uuidForm.test(text);

/** Reads a silence. @throws code 5 */
export async function readSilence(db: Db, tenantId: string, id: string): Promise<StoredSilence> {
  const [row] = isSilenceId(id) ? await orm(db).select().from(silences).where(named(tenantId, id)) : [];
  if (row === undefined) throw notFound("silence", id);
  return row;
}

async function lockSilence(tx: Db, tenantId: string, id: string): Promise<StoredSilence> {
  const [row] = isSilenceId(id) ? await orm(tx).select().from(silences).where(named(tenantId, id)).for("update") : [];
  if (row === undefined) throw notFound("silence", id);
  return row;
}

/** Names that there is none of would hold nothing. @throws code 3 */
async function checkScope(
  tx: Db,
  tenantId: string,
  { ruleNames, destinationNames }: Scope,
  at: string,
  before: Scope = { ruleNames: [], destinationNames: [] },
) {
  if (ruleNames.length === 0 && destinationNames.length === 0) return;
  const [known] = await tx<[{ rules: string[]; destinations: string[] }]>`
    select array(select name from rules where tenant_id = ${tenantId} and name = any(${textArray(ruleNames)}::text[])) as rules,
      array(select name from destinations
        where tenant_id = ${tenantId} and name = any(${textArray(destinationNames)}::text[])) as destinations`;
  const rules = new Set([...known.rules, ...before.ruleNames]);
  const destinations = new Set([...known.destinations, ...before.destinationNames]);
  const broken = [
    ...unknownNames("rule", ruleNames, rules, `${at}ruleNames`),
    ...unknownNames("destination", destinationNames, destinations, `${at}destinationNames`),
  ];
  if (broken.length > 0) throw invalidFields(broken);
}

/** The silences of a tenant that have not ended, or the one that is named: how many, and their bytes. */
async function held(tx: Db, tenantId: string, nowMs: number, id?: string): Promise<Total> {
  const [row] = await tx<[Total]>`
    select count(*)::float8 as count,
      coalesce(sum(pg_column_size(matchers) + pg_column_size(parts) + pg_column_size(rule_names)
        + pg_column_size(destination_names) + pg_column_size(comment) + pg_column_size(created_by)), 0)::float8 as size
    from silences where tenant_id = ${tenantId} and (ends_ms is null or ends_ms > ${BigInt(nowMs)})
      ${id === undefined ? tx`` : tx`and id = ${id}`}`;
  return row;
}

/**
 * Checks what silences a tenant has after one was made, or changed since it held `before`; as the others, not before rows of due_deliveries
 * are locked. @throws code 8 for one too many, code 9 for too much text
 */
async function checkBounds(
  tx: Db,
  tenantId: string,
  id: string,
  { nowMs, bounds }: SilenceWrite,
  before: Total = { count: 0, size: 0 },
): Promise<void> {
  const own = await held(tx, tenantId, nowMs, id);
  const growth = { count: own.count - before.count, size: own.size - before.size };
  const crowded = ({ count }: Total) => growth.count > 0 && count > silencesMax;
  const fits = (total: Total) => !crowded(total) && (growth.size <= 0 || total.size <= bounds.resourceBytesMax);
  const total = await addToTotal(tx, tenantId, {
    what: "silences",
    growth,
    fits,
    sum: () => held(tx, tenantId, nowMs),
  });
  if (fits(total)) return;
  if (!crowded(total)) throw tooLarge("silences", total.size, bounds);
  throw exhausted(
    `the tenant has ${silencesMax} silences that have not expired already; end one first`,
    undefined,
    ErrorReason.QUOTA_REACHED,
  );
}

/**
 * Reads silences by their ids, in this order; those that are gone are left out. By the primary key, one look at it an id: `id = any(…)` may
 * walk the index by age, which ends with the id.
 */
export async function readSilences(db: Db, tenantId: string, ids: readonly string[]): Promise<StoredSilence[]> {
  if (ids.length === 0) return [];
  const silence = orm(db)
    .select()
    .from(silences)
    .where(and(eq(silences.tenantId, tenantId), sql`${silences.id} = asked.id`))
    .limit(1)
    .as("silence");
  const rows = await orm(db)
    .select()
    .from(sql`unnest(${uuidArray(ids)}::uuid[]) as asked(id)`)
    .crossJoinLateral(silence);
  const byId = new Map(rows.map((row) => [row.silence.id, row.silence]));
  return ids.flatMap((each) => byId.get(each) ?? []);
}

/** Which silences to list. */
export interface SilenceFilter {
  readonly states: readonly SilenceState[];
  /** Matchers, each of which they hold. */
  readonly canonical: readonly string[];
}

/** The condition of a list of silences, at a moment. */
export function silencesWhere(tenantId: string, { states, canonical }: SilenceFilter, nowMs: number) {
  const now = BigInt(nowMs);
  const running = or(sql`${silences.endsMs} is null`, gt(silences.endsMs, now));
  const byState = {
    PENDING: and(running, gt(silences.startsMs, now)),
    ACTIVE: and(running, lte(silences.startsMs, now)),
    EXPIRED: lte(silences.endsMs, now),
  };
  return and(
    eq(silences.tenantId, tenantId),
    states.length === 3 ? undefined : or(sql`false`, ...states.map((state) => byState[state])),
    canonical.length === 0 ? undefined : sql`${silences.canonical} @> ${textArray([...canonical])}::text[]`,
  );
}

/** Forgets silences that ended before a time, a portion of them. Returns whether there may be more. */
export async function forgetOldSilences(db: Db, tenantId: string, beforeMs: number): Promise<boolean> {
  const portion = 1000;
  const gone = await db<{ id: string }[]>`
    delete from silences where tenant_id = ${tenantId} and id in (
      select id from silences where tenant_id = ${tenantId} and ends_ms < ${BigInt(Math.floor(beforeMs))} limit ${portion})
    returning id`;
  if (gone.length > 0)
    await db`
      delete from silence_subjects
      where tenant_id = ${tenantId} and silence_id = any(${textArray(gone.map(({ id }) => id))}::uuid[])`;
  return gone.length === portion;
}
