import type { JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { readConfig } from "../../src/config/settings.ts";
import { keepPartitions } from "../../src/db/partitions.ts";
import type { Consumer } from "../../src/events/consumers/consumer.ts";
import { type RuleEngine, ruleEngine } from "../../src/notifications/deciding/engine.ts";
import { notSent, sent } from "../../src/notifications/kinds/attempt-outcome.ts";
import { openSendEnvironment } from "../../src/notifications/kinds/send-environment.ts";
import { historyPartitions } from "../../src/notifications/queue/history.ts";
import type { WaitingDelivery } from "../../src/notifications/subject/delivery.ts";
import type { Subject } from "../../src/notifications/subject/subject.ts";
import { cases } from "../support/cases.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { dispatchOnce } from "./dispatch.ts";
import { expectNothingHeldUp } from "./model-delivering.ts";
import { type ModelRule, type ModelTrigger, RuleModel } from "./rule-model.ts";
import { equals, report, ruleTenant } from "./rule-tenant.ts";

const { sql, pool } = await testDatabase();
const runs = cases(16);
const beginMs = Date.now();
const hourMs = 3_600_000;
const days = { ...historyPartitions(readConfig({})), aheadMs: 60 * 24 * hourMs };
await keepPartitions(sql, days, beginMs);
const world = openSendEnvironment(readConfig({}), {
  ownUrl: "https://belfry.test",
  nowMs: Date.now,
  createEvent: async () => undefined,
});
afterAll(() => world.outbound.close());

const events = ["disk full", "disk slow", "fan"];
const ruleNames = ["one", "two", "three"];
const triggerNames = ["disks", "severe", "ended"];
const destinationNames = ["ops", "log"];

const clauseOf = (trigger: ModelTrigger): JsonValue => {
  if ("closed" in trigger) return equals("status", "STATUS_CLOSED");
  if ("name" in trigger) return { startsWith: { field: "name", value: trigger.name } };
  return { greaterAndEquals: { field: "severity", value: { numberVal: trigger.severity } } };
};

interface Stored {
  rule: string;
  destination: string;
  event: string;
  number: number;
  occasion: string;
  status: string;
}

const newEngine = () =>
  ruleEngine(
    sql,
    () => undefined,
    () => 0,
  );

/** A tenant of the service, its engine, and receivers that answer or do not. */
class Real {
  readonly down = new Set<string>();
  engine: RuleEngine;
  readonly tenantId: string;
  readonly changing: ReturnType<typeof ruleTenant>;

  constructor(tenantId: string, handsOver: boolean) {
    this.tenantId = tenantId;
    this.engine = newEngine();
    // Through this one's memory rules are changed; the engine is another server's.
    const consumer: Consumer = {
      name: this.engine.consumer.name,
      wants: (...of) => this.engine.consumer.wants(...of),
      batch: (...of) => this.engine.consumer.batch(...of),
    };
    this.changing = ruleTenant(sql, { ...this.engine, consumer }, tenantId, handsOver);
  }

  /** A server that has no memory replaces the one before. */
  async restart() {
    await this.engine.stop();
    this.engine = newEngine();
  }

  /** The looks at delays that have ended, whichever destinations take anything now; then all that is due is tried. */
  async dispatch(nowMs: number) {
    const rows = await sql<WaitingDelivery[]>`
      select id, rule_id as "ruleId", rule_name as "ruleName", trigger_names as "triggerNames", silence_id as "silenceId", destination_name as "destinationName", occasion, created_ms::float8 as "createdMs", due_ms::float8 as "dueMs", tries, told,
        json_build_object('key', encode(subject, 'hex'), 'eventId', encode(event_id, 'hex'), 'number', number,
          'entityId', encode(entity_id, 'hex')) as subject
      from due_deliveries
      where tenant_id = ${this.tenantId} and occasion = 'first' and due_ms > created_ms and due_ms <= ${nowMs}`;
    await this.engine.recheck(
      this.tenantId,
      rows.map((row) => ({ ...row, subject: subjectOf(row) })),
      nowMs,
    );
    const send: Parameters<typeof dispatchOnce>[2]["send"] = async ({ destinationKey, state }) =>
      this.down.has(destinationKey.slice(this.tenantId.length + 1))
        ? notSent("webhook", "busy", "down", state)
        : sent("taken", state);
    const { recheck } = this.engine;
    const results = await dispatchOnce(this.tenantId, nowMs, { pool, world, recheck, send });
    await expectNothingHeldUp(sql, this.tenantId, nowMs);
    return results;
  }

  async stored(): Promise<Stored[]> {
    return await sql<Stored[]>`
      select d.rule_name as rule, d.destination_name as destination, e.name as event, d.number, d.occasion, d.status
      from (
        select tenant_id, created_ms, id, rule_name, destination_name, event_id, number, occasion, 'PENDING' as status
        from due_deliveries where tenant_id = ${this.tenantId}
        union all
        select tenant_id, created_ms, id, rule_name, destination_name, event_id, number, occasion, status
        from delivery_history where tenant_id = ${this.tenantId}
      ) as d join events e on e.tenant_id = ${this.tenantId} and e.id = d.event_id
      order by d.created_ms, d.id`;
  }

  /** What was decided is what the model has decided, for each rule, destination and occurrence in the same order. */
  async compare(model: RuleModel) {
    const all = (await this.stored()).map(
      ({ rule, destination, event, number, occasion }) => `${rule} ${destination} ${event} ${number} ${occasion}`,
    );
    expect(grouped(all)).toEqual(grouped(model.decided));
  }
}

const subjectOf = ({ subject }: WaitingDelivery): Subject => {
  const { key, eventId, number, entityId } = subject as unknown as Record<"key" | "eventId" | "entityId", string> & {
    number: number;
  };
  const [keyBytes, eventBytes, entityBytes] = [key, eventId, entityId].map((text) => Buffer.from(text, "hex"));
  return { key: keyBytes as Buffer, eventId: eventBytes as Buffer, entityId: entityBytes as Buffer, number };
};

/** Texts by all of their words but the last, which stay in order. */
function grouped(texts: readonly string[]): Record<string, string[]> {
  const groups: Record<string, string[]> = {};
  for (const text of texts) {
    const at = text.lastIndexOf(" ");
    const key = text.slice(0, at);
    groups[key] = [...(groups[key] ?? []), text.slice(at + 1)];
  }
  return groups;
}

type Command = fc.AsyncCommand<RuleModel, Real>;
const command = (
  name: string,
  run: (model: RuleModel, real: Real) => Promise<unknown>,
  check: (model: RuleModel) => boolean = () => true,
): Command => ({
  check,
  toString: () => name,
  async run(model, real) {
    model.nowMs += 1000;
    await run(model, real);
    await real.compare(model);
  },
});

const some = (names: readonly string[]) => fc.subarray([...names], { minLength: 1 });

const rule: fc.Arbitrary<Omit<ModelRule, "id">> = fc
  .record({
    enabled: fc.boolean(),
    triggers: some(triggerNames),
    destinations: some(destinationNames),
    repeat: fc.boolean(),
    repeatIntervalSec: fc.constantFrom(0, 5, 600),
    delaySec: fc.constantFrom(0, 0, 3, 300),
    sendUpdates: fc.boolean(),
    repeatWhile: fc.constantFrom(0, 0, 1, 2),
    muteDuringMaintenance: fc.boolean(),
  })
  .map((given) => (given.repeat && given.repeatIntervalSec > 0 ? given : { ...given, repeatWhile: 0 as const }));
const trigger: fc.Arbitrary<ModelTrigger> = fc.oneof(
  fc.constantFrom("disk", "fan").map((name) => ({ name })),
  fc.integer({ min: 2, max: 5 }).map((severity) => ({ severity })),
  fc.constant({ closed: true as const }),
);

async function setRule(model: RuleModel, real: Real, name: string, given: Omit<ModelRule, "id">) {
  model.setRule(name, given);
  await real.changing.rule({ name, ...given });
  await real.changing.lookAtStanding(model.nowMs);
}
async function setTrigger(model: RuleModel, real: Real, name: string, given: ModelTrigger) {
  model.setTrigger(name, given);
  await real.changing.trigger(name, clauseOf(given));
  await real.changing.lookAtStanding(model.nowMs);
}

const commands = [
  fc
    .tuple(fc.constantFrom(...events), fc.integer({ min: 2, max: 5 }), fc.integer({ min: 0, max: 3 }))
    .map(([name, severity, closing]) =>
      command(`report ${name} ${severity}${closing === 0 ? " closed" : ""}`, async (model, { changing }) => {
        model.report(name, severity, closing === 0);
        await changing.put(model.nowMs, report(model.nowMs, { name, severity, status: closing === 0 ? 3 : 1 }));
      }),
    ),
  fc.tuple(fc.constantFrom(...events), fc.boolean()).map(([name, acknowledged]) =>
    command(`${acknowledged ? "" : "un"}acknowledge ${name}`, async (model, { changing }) => {
      const number = model.occurrences.get(name)?.number;
      model.set(name, { acknowledged });
      if (number !== undefined) await changing.set(model.nowMs, report(0, { name }), { acknowledged }, number);
    }),
  ),
  fc.tuple(fc.constantFrom(...events), fc.boolean()).map(([name, closed]) =>
    command(`${closed ? "close" : "reopen"} ${name}`, async (model, { changing }) => {
      const number = model.occurrences.get(name)?.number;
      model.set(name, { closed });
      if (number !== undefined)
        await changing.set(model.nowMs, report(0, { name }), { status: closed ? 3 : 1 }, number);
    }),
  ),
  fc
    .tuple(fc.constantFrom(...ruleNames), rule)
    .map(([name, given]) =>
      command(`rule ${name} ${JSON.stringify(given)}`, (model, real) => setRule(model, real, name, given)),
    ),
  fc.constantFrom(...ruleNames).map((name) =>
    command(`delete ${name}`, async (model, { changing }) => {
      model.rules.delete(name);
      await changing.deleteRule(name);
    }),
  ),
  fc
    .tuple(fc.constantFrom(...triggerNames), trigger)
    .map(([name, given]) =>
      command(`trigger ${name} ${JSON.stringify(given)}`, (model, real) => setTrigger(model, real, name, given)),
    ),
  fc
    .tuple(fc.constantFrom(...destinationNames), fc.boolean())
    .map(([name, down]) =>
      command(`${name} is ${down ? "down" : "up"}`, async (_, real) => real.down[down ? "add" : "delete"](name)),
    ),
  fc.constantFrom(1, 4, 60, 301, 1800).map((seconds) =>
    command(`${seconds} s`, async (model, real) => {
      model.nowMs += seconds * 1000;
      model.look();
      await real.dispatch(model.nowMs);
      await real.changing.repeat(model.nowMs);
    }),
  ),
  fc.boolean().map((begins) =>
    command(
      `maintenance ${begins ? "begins" : "ends"}`,
      async (model, { changing }) => {
        model.setMaintenance(begins);
        await changing.maintenance(model.nowMs, begins);
      },
      ({ occurrences, inMaintenance }) => occurrences.size > 0 && inMaintenance !== begins,
    ),
  ),
  fc.constant(command("restart", (_, real) => real.restart())),
];

test.each([
  ["as it is handed over", true],
  ["as it is read from the feed", false],
])(
  "whatever happens, what rules decide %s is what the model decides, and all of it is sent or cancelled in the end",
  { timeout: 600_000 },
  async (_, handsOver) => {
    await fc.assert(
      fc.asyncProperty(fc.commands(commands, { maxCommands: 60, size: "max" }), async (sequence) => {
        const { id } = await testTenant(sql);
        const [model, real] = [new RuleModel(beginMs), new Real(id, handsOver)];
        for (const each of destinationNames) await real.changing.destination(each);
        await setTrigger(model, real, "disks", { name: "disk" });
        await setTrigger(model, real, "severe", { severity: 4 });
        await setTrigger(model, real, "ended", { closed: true });
        const usual = {
          repeatWhile: 0 as const,
          muteDuringMaintenance: false,
          enabled: true,
          repeat: false,
          repeatIntervalSec: 600,
          delaySec: 0,
          sendUpdates: true,
        };
        await setRule(model, real, "one", { ...usual, triggers: ["disks"], destinations: ["ops", "log"] });
        await setRule(model, real, "two", {
          ...usual,
          triggers: ["severe", "ended"],
          destinations: ["ops"],
          delaySec: 3,
        });
        await fc.asyncModelRun(() => ({ model, real }), sequence);
        await expectDrained(model, real);
        await real.engine.stop();
      }),
      { numRuns: runs, endOnFailure: runs < 50 },
    );
  },
);

/** Receivers answer again, and time passes: nothing waits, and an end is sent where something was, never else. */
async function expectDrained(model: RuleModel, real: Real) {
  real.down.clear();
  for (let hours = 0; hours < 16; hours++) await real.dispatch(model.nowMs + hours * hourMs);
  const byOccurrence = Map.groupBy(
    await real.stored(),
    ({ destination, event, number }) => `${destination} ${event} ${number}`,
  );
  for (const all of byOccurrence.values()) {
    expect(all.filter(({ status }) => !["SENT", "CANCELLED"].includes(status))).toEqual([]);
    const told = all.filter(({ status }) => status === "SENT");
    expect(told[0]?.occasion).not.toBe("clear");
  }
}
