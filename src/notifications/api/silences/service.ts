import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { desc, sql } from "drizzle-orm";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { type Silence, Silence_State, SilenceSchema } from "#gen/belfry/notifications/v1/silence_pb.ts";
import {
  CreateSilenceResponseSchema,
  ExpireSilenceResponseSchema,
  GetSilenceResponseSchema,
  type ListSilencesRequest,
  ListSilencesRequestSchema,
  ListSilencesResponseSchema,
  ReplaceSilenceResponseSchema,
  type SilenceService,
} from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { allMatchersTrouble, labelMatcher, matcherText, readMatchers } from "../../../clause/label-matcher.ts";
import type { Db } from "../../../db/connect.ts";
import { orm } from "../../../db/orm.ts";
import { pageBytesMax } from "../../../db/paging/page-contents.ts";
import { countedPage } from "../../../db/paging/token-page.ts";
import { invalidField, notFound } from "../../../errors.ts";
import { paced } from "../../../event-loop.ts";
import { principalOf } from "../../../rpc/context.ts";
import { audited } from "../../../tenants/audit.ts";
import type { InForce } from "../../deciding/engine.ts";
import { matchRow, readEntitiesOf, rowLabels } from "../../rules/rows.ts";
import {
  readSilence,
  readSilences,
  type SilenceState,
  type StoredSilence,
  silencesWhere,
  stateOf,
  type WantedSilence,
} from "../../silences/silences.ts";
import type { Silences } from "../../silences/silences-in-force.ts";
import { silences } from "../../silences/tables.ts";
import { type SilenceWriting, silenceWriter } from "../../silences/write.ts";
import { readOccurrence } from "../../subject/read-subjects.ts";
import { silencePreviews } from "./preview.ts";

const at = "silence.";
/** How many silences of one occurrence are answered. */
const matchingMax = 100;
const states: readonly SilenceState[] = ["PENDING", "ACTIVE", "EXPIRED"];

/** A silence as the API shows it. */
export function toSilence(row: StoredSilence, nowMs: number): Silence {
  const { clientId, clientName, keyPrefix, endsMs } = row;
  return create(SilenceSchema, {
    id: row.id,
    matchers: row.matchers,
    startsAt: row.startsMs,
    ...(endsMs !== null && { endsAt: endsMs }),
    // One that has ended shows when; both members are never sent back together.
    untilResolved: endsMs === null,
    ruleNames: row.ruleNames,
    destinationNames: row.destinationNames,
    comment: row.comment,
    createdBy: row.createdBy,
    author: { clientId, clientName, keyPrefix },
    state: Silence_State[stateOf(row, nowMs)],
    trouble: allMatchersTrouble(row.parts.map(labelMatcher)),
  });
}

/** @throws code 3 unless exactly one of the two ends is given */
function wantedOf(sent: Silence): WantedSilence {
  const { endsAt, startsAt, untilResolved } = sent;
  if (untilResolved === (endsAt !== undefined))
    throw invalidField(
      `${at}endsAt`,
      untilResolved ? "must be left out beside untilResolved" : "is required, or untilResolved",
      untilResolved ? FieldRule.EXCLUDED : FieldRule.REQUIRED,
    );
  return {
    matchers: sent.matchers,
    startsMs: startsAt === undefined ? undefined : Number(startsAt),
    endsMs: endsAt === undefined ? undefined : Number(endsAt),
    ruleNames: sent.ruleNames,
    destinationNames: sent.destinationNames,
    comment: sent.comment,
    createdBy: sent.createdBy,
  };
}

/** What holds notifications back by labels. */
export function silenceService(
  db: Db,
  { inForce, ...writing }: SilenceWriting & { readonly inForce: InForce },
): Partial<ServiceImpl<typeof SilenceService>> {
  const { nowMs } = writing;
  const writer = silenceWriter(db, writing);
  const by = (context: HandlerContext) => {
    const { clientId, clientName, keyPrefix } = principalOf(context);
    return { author: { clientId, clientName, keyPrefix }, at };
  };

  return {
    ...silencePreviews(db, inForce),

    async createSilence({ silence: sent = create(SilenceSchema) }, context) {
      const { tenantId } = principalOf(context);
      const row = await writer.create(tenantId, wantedOf(sent), by(context), (tx, id) => audited(tx, context, id));
      return create(CreateSilenceResponseSchema, { silence: toSilence(row, nowMs()) });
    },

    async getSilence({ id }, context) {
      const row = await readSilence(db, principalOf(context).tenantId, id);
      return create(GetSilenceResponseSchema, { silence: toSilence(row, nowMs()) });
    },

    async listSilences(request, context) {
      const { tenantId } = principalOf(context);
      if (request.occurrenceId === "") return await listSilences(db, tenantId, request, nowMs());
      return await silencesOver(db, tenantId, request.occurrenceId, (await inForce(tenantId)).silences, nowMs());
    },

    async replaceSilence({ id, silence: sent = create(SilenceSchema) }, context) {
      const { tenantId } = principalOf(context);
      const how = { ...by(context), again: false };
      const row = await writer.replace(tenantId, id, wantedOf(sent), how, (tx, each) => audited(tx, context, each));
      return create(ReplaceSilenceResponseSchema, { silence: toSilence(row, nowMs()) });
    },

    async expireSilence({ id }, context) {
      const { tenantId } = principalOf(context);
      const row = await writer.expire(tenantId, id, (tx, each) => audited(tx, context, each));
      return create(ExpireSilenceResponseSchema, { silence: toSilence(row, nowMs()) });
    },
  };
}

async function listSilences(db: Db, tenantId: string, request: ListSilencesRequest, nowMs: number) {
  const { state, filter } = request;
  const canonical = readMatchers(filter, "filter").map(matcherText);
  const query = JSON.stringify([state, canonical]);
  const page = countedPage(ListSilencesRequestSchema.typeName, tenantId, request, query);
  const wanted: readonly SilenceState[] =
    state === Silence_State.STATE_UNSPECIFIED ? states : states.filter((name) => Silence_State[name] === state);
  const matching = silencesWhere(tenantId, { states: wanted, canonical }, nowMs);
  const [createdMs, id] = page.after?.texts ?? [];
  const place =
    createdMs === undefined
      ? sql`true`
      : sql`(${silences.createdMs}, ${silences.id}) < (${createdMs}::int8, ${id ?? ""}::uuid)`;
  const rows = await orm(db)
    .select()
    .from(silences)
    .where(sql`${matching} and ${place}`)
    .orderBy(desc(silences.createdMs), desc(silences.id))
    .limit(page.rowsMax ?? 1001);
  const total = await page.total(() => orm(db).$count(silences, matching));
  const { items, nextPageToken } = page.cut(rows, (row) => [String(row.createdMs), row.id], total, fitting(rows));
  return create(ListSilencesResponseSchema, {
    silences: items.map((row) => toSilence(row, nowMs)),
    nextPageToken,
    totalCount: total,
  });
}

/** Finds the active silences that match an occurrence. @throws code 5 when there is none of the id */
async function silencesOver(db: Db, tenantId: string, occurrenceId: string, inForce: Silences, nowMs: number) {
  const found = await readOccurrence(db, tenantId, occurrenceId);
  if (found === undefined) throw notFound("occurrence", occurrenceId);
  const row = matchRow(found.event, found.occurrence);
  await readEntitiesOf(db, tenantId, [row]);
  const labels = rowLabels(row);
  const matching = await inForce.matching(labels, nowMs, paced(undefined, tenantId, { holdsNothing: true }));
  const ids = matching.slice(0, matchingMax).map(({ id }) => id);
  return create(ListSilencesResponseSchema, {
    silences: (await readSilences(db, tenantId, ids)).map((each) => toSilence(each, nowMs)),
    totalCount: BigInt(matching.length),
    labels: { ...labels },
  });
}

/** How many of these an answer holds, one at least. */
function fitting(rows: readonly StoredSilence[]): number {
  let bytes = 0;
  const end = rows.findIndex(({ matchers, ruleNames, destinationNames, comment, createdBy }) => {
    for (const text of [...matchers, ...ruleNames, ...destinationNames, comment, createdBy])
      bytes += Buffer.byteLength(text);
    return bytes > pageBytesMax;
  });
  return end === -1 ? rows.length : Math.max(1, end);
}
