import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { StatusItemSchema } from "#gen/belfry/events/v1/management_service_pb.ts";
import type { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Sql } from "../../src/db/connect.ts";
import { makeHome } from "../../src/db/home-row.ts";
import { transaction } from "../../src/db/transaction.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { eventIds } from "../../src/entities/identity.ts";
import { storingChanges } from "../../src/events/changes.ts";
import { feedConsumer } from "../../src/events/consumers/feed-consumer.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import { occurrenceIdText } from "../../src/events/occurrence-id.ts";
import { setStatuses } from "../../src/events/set-status.ts";
import { claim, finishJobs } from "../../src/jobs/queue.ts";
import type { JobKind } from "../../src/jobs/worker.ts";
import { announceRuleChange } from "../../src/notifications/deciding/after-rule-change.ts";
import { type RuleEngine, ruleEngine } from "../../src/notifications/deciding/engine.ts";
import { changedRulesKind } from "../../src/notifications/deciding/reevaluate-changed-rules.ts";
import { repeatKind } from "../../src/notifications/deciding/repetitions.ts";
import { unmuteKind } from "../../src/notifications/deciding/unmute-jobs.ts";
import type { RulePart } from "../../src/notifications/silences/rules-version.ts";
import { groupsKind } from "../../src/notifications/subject/group-jobs.ts";
import { ingestEvents } from "../entities/stored.ts";

/** What a delivery has before its first try, where nothing held it. */
export const untried = { ruleName: "r", triggerNames: [], tries: 0, silenceId: null };

/** A rule as tests write it. */
export interface TestRule {
  name: string;
  triggers: string[];
  destinations?: string[];
  enabled?: boolean;
  repeat?: boolean;
  repeatIntervalSec?: number;
  repeatWhile?: RepeatWhile;
  delaySec?: number;
  sendUpdates?: boolean;
  muteDuringMaintenance?: boolean;
  grouping?: { by: string[]; waitSec: number; intervalSec: number };
}

/** A delivery as it is stored, in short. */
export interface TestDelivery {
  rule: string;
  triggers: string[];
  destination: string;
  occasion: string;
  event: string | null;
  entity: string | null;
  createdMs: number;
  dueMs: number;
  told: Record<string, unknown>;
}

export const equals = (field: string, stringVal: string): JsonValue => ({ equals: { field, value: { stringVal } } });

/** A report of an event, at this time. */
export function report(timeMs: number, more: Partial<EventItem> = {}): EventItem {
  const texts = { type: "", summary: "", body: "", metadata: {} };
  const usual = { name: "disk full", dimensions: { source: "web-1" }, severity: 4, status: 1, acknowledged: undefined };
  return { ...texts, ...usual, ...more, timeMs: BigInt(timeMs) };
}

/** The id of an event's occurrence, as deliveries name it. */
export const occurrenceOf = (tenantId: string, { name, dimensions }: EventItem, number = 1) =>
  occurrenceIdText(eventIds(tenantId, dimensions, name).eventId, number);

/** A tenant whose rules are written as they are stored, and whose events come at moments that a test says. */
export function ruleTenant(
  sql: Sql,
  engine: RuleEngine = ruleEngine(sql, () => undefined, Date.now),
  tenantId: string = randomUUID(),
  /** Whether what it stores is handed to the consumer, as a server does; else it is read from the feed when it is matched. */
  handsOver = false,
) {
  let homeMade: Promise<void> | undefined;
  /** The time of what is under way. */
  let atMs = 0;
  const consumer = feedConsumer(sql, engine.consumer, { nowMs: () => atMs });
  const store = storingChanges({ consumers: [engine.consumer], ...(handsOver && { onStored: consumer.stored }) });
  const changed = (kind: RulePart["kind"], name: string, write: (tx: Sql) => Promise<unknown>) =>
    transaction(sql, async (tx) => {
      const own = tx`tenant_id = ${tenantId} and name = ${name}`;
      const there = kind === "rule" ? await tx<{ enabled: boolean }[]>`select enabled from rules where ${own}` : [];
      await write(tx as Sql);
      const look = there[0]?.enabled === false ? "enabled" : "changed";
      await announceRuleChange(tx, tenantId, { kind, name }, kind === "destination" ? undefined : look);
    });

  /** Runs the jobs of a kind that are due, as a server does. Returns in how many transactions. */
  async function runJobs(name: string, nowMs: number, untilMs = nowMs): Promise<number> {
    const kind = engine.kinds.find((each) => each.name === name) as JobKind;
    const lane = { tenantId, kind: name };
    for (let runs = 0; ; runs++) {
      const jobs = await claim(sql, lane, { sizeMax: kind.sizeMax, leaseMs: 10_000, nowMs: untilMs });
      if (jobs.length === 0) return runs;
      await transaction(sql, async (tx) => finishJobs(tx, lane, jobs, await kind.run(tx, tenantId, jobs, nowMs)));
    }
  }

  return {
    tenantId,
    engine,
    consumer,

    /** Writes a trigger: a clause over events, or a whole type. */
    trigger(name: string, clause: JsonValue, type: JsonValue = { event: { query: { clause } } }, createdMs = 0) {
      const stored = toJson(TriggerTypeSchema, fromJson(TriggerTypeSchema, type));
      const source = Object.keys(type as object)[0] as string;
      return changed(
        "trigger",
        name,
        (tx) => tx`
          insert into triggers (tenant_id, name, description, tags, source, type, created_ms)
          values (${tenantId}, ${name}, '', '[]', ${source}, ${JSON.stringify(stored)}::jsonb, ${createdMs})
          on conflict (tenant_id, name) do update set type = excluded.type`,
      );
    },

    destination: (name: string, type: Record<string, object> = { webhook: { url: "http://127.0.0.1/" } }) =>
      changed(
        "destination",
        name,
        (tx) => tx`
          insert into destinations (tenant_id, name, description, tags, kind, type, secrets, max_per_minute,
            disabled_reason, created_ms)
          values (${tenantId}, ${name}, '', '[]', ${Object.keys(type)[0] as string}, ${JSON.stringify(type)}::jsonb, '{}', 0, '', 0)`,
      ),

    /** Writes a rule, or replaces it. */
    rule: ({ name, triggers, destinations = ["d"], ...more }: TestRule) =>
      changed("rule", name, async (tx) => {
        const { enabled = true, repeat = false, repeatIntervalSec = 3600, delaySec = 0 } = more;
        const { sendUpdates = false, muteDuringMaintenance = false, repeatWhile = 0, grouping } = more;
        await tx`
          insert into rules (tenant_id, name, description, enabled, message, repeat, repeat_interval_sec, repeat_while,
            delay_sec, send_updates, mute_during_maintenance, tags, created_ms, grouping)
          values (${tenantId}, ${name}, '', ${enabled}, '', ${repeat}, ${repeatIntervalSec}, ${repeatWhile}, ${delaySec},
            ${sendUpdates}, ${muteDuringMaintenance}, '[]', 0, ${grouping === undefined ? null : JSON.stringify(grouping)}::jsonb)
          on conflict (tenant_id, name) do update set enabled = excluded.enabled, repeat = excluded.repeat,
            repeat_interval_sec = excluded.repeat_interval_sec, repeat_while = excluded.repeat_while, delay_sec = excluded.delay_sec,
            grouping = excluded.grouping, send_updates = excluded.send_updates, mute_during_maintenance = excluded.mute_during_maintenance`;
        await tx`delete from rule_triggers where tenant_id = ${tenantId} and rule_name = ${name}`;
        await tx`delete from rule_destinations where tenant_id = ${tenantId} and rule_name = ${name}`;
        for (const [place, each] of triggers.entries()) {
          await tx`insert into rule_triggers (tenant_id, rule_name, trigger_name, place)
            values (${tenantId}, ${name}, ${each}, ${place})`;
        }
        for (const [place, each] of destinations.entries()) {
          await tx`insert into rule_destinations (tenant_id, rule_name, destination_name, place)
            values (${tenantId}, ${name}, ${each}, ${place})`;
        }
      }),

    deleteRule: (name: string) =>
      changed("rule", name, (tx) => tx`delete from rules where tenant_id = ${tenantId} and name = ${name}`),

    /** Stores events that come at a moment, and matches what of them waits for it: on a busy machine that may be any. */
    async put(nowMs: number, ...items: EventItem[]) {
      await this.store(nowMs, ...items);
      await this.match(nowMs);
    },

    /** Stores events that come at a moment. */
    async store(nowMs: number, ...items: EventItem[]) {
      atMs = nowMs;
      homeMade ??= makeHome(sql, tenantId);
      await homeMade;
      await ingestEvents(sql, tenantId, items, { nowMs, store, known: entityCache() });
    },

    /** Sets the status or acknowledgement of an occurrence by management. */
    async set(
      nowMs: number,
      item: EventItem,
      { status, acknowledged }: { status?: Status; acknowledged?: boolean },
      number = 1,
    ) {
      const occurrenceId = occurrenceOf(tenantId, item, number);
      const sent = create(StatusItemSchema, {
        eventId: occurrenceId.split(":")[0] as string,
        occurrenceId,
        ...(acknowledged !== undefined && { acknowledged }),
        ...(status !== undefined && { statusWrapper: { status } }),
      });
      atMs = nowMs;
      await transaction(sql, async (tx) => {
        const { locked, changes } = await setStatuses(tx, tenantId, [sent], nowMs);
        await store(tx, locked, changes, nowMs);
      });
      await this.match(nowMs);
    },

    /** Matches what waits for it, as a server does. */
    async match(nowMs: number) {
      atMs = nowMs;
      while ((await consumer.consume(tenantId)) !== "end") await sleep(2);
    },

    /** Looks at what rules match that were changed: their jobs are due by the clock of the database. */
    lookAtStanding: (nowMs: number) => runJobs(changedRulesKind, nowMs, Math.max(nowMs, Date.now() + 60_000)),

    /** All entities are in maintenance from now on, or none is any more. */
    async maintenance(nowMs: number, begins: boolean): Promise<number> {
      await transaction(sql, async (tx) => {
        const entities = await tx<{ id: Buffer }[]>`
          update entities set window_production_state = ${begins ? 300 : null} where tenant_id = ${tenantId} returning id`;
        const ids = entities.map(({ id }) => id);
        if (!begins) await engine.windows.onReleased(tx, tenantId, ids);
      });
      return begins ? 0 : await runJobs(unmuteKind, nowMs);
    },

    /** Repeats what is due by the clock. */
    repeat: (nowMs: number) => runJobs(repeatKind, nowMs),

    /** Looks at groups: takes in what began or ended, and flushes what is due. */
    groups: (nowMs: number) => runJobs(groupsKind, nowMs),

    /** What waits to be sent, in the order of its making. */
    async deliveries(): Promise<TestDelivery[]> {
      return await sql<TestDelivery[]>`
        select d.rule_name as rule, d.trigger_names as triggers, d.destination_name as destination, d.occasion,
          e.name as event, n.dimensions ->> 'source' as entity, d.created_ms::float8 as "createdMs",
          d.due_ms::float8 as "dueMs", d.told
        from due_deliveries d
          left join events e on e.tenant_id = d.tenant_id and e.id = d.event_id
          left join entities n on n.tenant_id = d.tenant_id and n.id = d.entity_id
        where d.tenant_id = ${tenantId}
        order by d.created_ms, d.rule_name, d.destination_name`;
    },

    /** Occasions and when they are due, as `first@100`. */
    async told(): Promise<string[]> {
      return (await this.deliveries()).map(({ occasion, dueMs }) => `${occasion}@${dueMs}`);
    },
  };
}
