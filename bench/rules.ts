// Storing of events beside 10 rules and beside 10,000, each over another entity; and without any.
import { randomUUID } from "node:crypto";
import { readConfig } from "../src/config/settings.ts";
import { connect } from "../src/db/connect.ts";
import { transaction } from "../src/db/transaction.ts";
import { knownEntities } from "../src/entities/known.ts";
import { type StoreChanges, storingChanges } from "../src/events/changes.ts";
import { type EventItem, ingestEvents } from "../src/events/ingest.ts";
import { ruleEngine } from "../src/notifications/engine.ts";
import { raiseRulesVersion } from "../src/tenants/rules-version.ts";
import { startDatabase } from "./support/database.ts";
import { machineFacts } from "./support/machine.ts";
import { quantileOf } from "./support/models.ts";
import { type Measured, race } from "./support/race.ts";
import { commandOf, settingsOf } from "./support/settings.ts";

const count = 1000;
const entities = 16_000;
const settings = settingsOf(process.argv.slice(2), { rounds: 5, countMs: 4000 });

await using database = await startDatabase();
const pool = connect(database.env.DATABASE_URL ?? "", readConfig(database.env));
console.log(`${commandOf("rules", process.argv.slice(2))}\n`);
for (const line of machineFacts(database.version)) console.log(line);
console.log(`
${count} new instances of known events a transaction, over ${entities} entities, one transaction after the other, in this
process. Rules ask for one source each by \`equals\`: of 10,000 most of the events match one, which has been told.
`);

/** A tenant with so many rules, whose events are stored by `store`. */
async function tenant(rules: number, store: StoreChanges) {
  const tenantId = randomUUID();
  const known = knownEntities();
  let timeMs = Date.now() - 10_000_000;
  let from = 0;

  async function put() {
    timeMs += 1;
    const items = Array.from({ length: count }, (_, i): EventItem => {
      const source = `host-${(from + i) % entities}`;
      const texts = { type: "disk", summary: "nearly full", body: "", metadata: { mount: "/var" } };
      const state = { severity: 4, status: 1, acknowledged: undefined };
      return { name: "disk full", dimensions: { source }, timeMs: BigInt(timeMs), ...texts, ...state };
    });
    from = (from + count) % entities;
    await ingestEvents(pool.ingest, tenantId, items, { nowMs: Date.now(), store, known });
  }
  if (rules > 0) await makeRules(tenantId, rules);
  for (let i = 0; i < (2 * entities) / count; i++) await put();

  return async (): Promise<Measured> => {
    const timesMs: number[] = [];
    const startMs = performance.now();
    const cpu = process.cpuUsage();
    while (performance.now() - startMs < settings.countMs) {
      const beganMs = performance.now();
      await put();
      timesMs.push(performance.now() - beganMs);
    }
    const { user, system } = process.cpuUsage(cpu);
    const items = timesMs.length * count;
    return {
      itemsPerSec: (items * 1000) / (performance.now() - startMs),
      p50Ms: quantileOf(timesMs, 0.5),
      p99Ms: quantileOf(timesMs, 0.99),
      refused: 0,
      cpuUs: (user + system) / items,
    };
  };
}

async function makeRules(tenantId: string, rules: number) {
  await transaction(database.sql, async (tx) => {
    await tx`
      insert into destinations (tenant_id, name, description, tags, kind, type, secrets, max_per_minute, disabled_reason,
        created_ms)
      values (${tenantId}, 'd', '', '[]', 'webhook', '{"webhook":{"url":"https://hooks.example.com/"}}', '{}', 0, '', 0)`;
    await tx`
      insert into triggers (tenant_id, name, description, tags, source, type, created_ms)
      select ${tenantId}::uuid, 't' || i, '', '[]', 'event', jsonb_build_object('event', jsonb_build_object('query',
        jsonb_build_object('clause', jsonb_build_object('equals', jsonb_build_object('field', 'source',
          'value', jsonb_build_object('stringVal', 'host-' || i)))))), 0
      from generate_series(1, ${rules}::int4) as i`;
    await tx`
      insert into rules (tenant_id, name, description, enabled, message, repeat, repeat_interval_sec, delay_sec,
        send_updates, mute_during_maintenance, tags, created_ms)
      select ${tenantId}::uuid, 'r' || i, '', true, '', false, 3600, 0, false, false, '[]', 0
      from generate_series(1, ${rules}::int4) as i`;
    await tx`
      insert into rule_triggers (tenant_id, rule_name, trigger_name, place)
      select ${tenantId}::uuid, 'r' || i, 't' || i, 0 from generate_series(1, ${rules}::int4) as i`;
    await tx`
      insert into rule_destinations (tenant_id, rule_name, destination_name, place)
      select ${tenantId}::uuid, 'r' || i, 'd', 0 from generate_series(1, ${rules}::int4) as i`;
    await raiseRulesVersion(tx, tenantId, { kind: "rule", name: "all" });
  });
}

const engine = ruleEngine(pool.background, () => undefined, Date.now);
const store = storingChanges({ onChanges: engine.onChanges });
const [bare, none, ten, many] = [
  await tenant(0, storingChanges({})),
  await tenant(0, store),
  await tenant(10, store),
  await tenant(10_000, store),
];
await database.sql`vacuum analyze`;
const runners = [
  { name: "nothing hears of changes", run: bare },
  { name: "no rule", run: none, aims: [{ to: "nothing hears of changes", of: "p50", aim: 1 } as const] },
  { name: "10 rules", run: ten },
  { name: "10,000 rules", run: many, aims: [{ to: "10 rules", of: "p50", aim: 1.5 } as const] },
];
console.log(await race(runners, settings, "event"));
await engine.stop();
await pool.close();
