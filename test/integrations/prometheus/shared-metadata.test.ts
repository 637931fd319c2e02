import { expect, test } from "vitest";
import { knownFacts } from "../../../src/integrations/prometheus/metric-facts.ts";
import { factStore } from "../../../src/metrics/fact-store.ts";
import { testDatabase } from "../../support/database.ts";
import { testTenant } from "../../support/tenant.ts";

const db = (await testDatabase()).sql;
const [hourMs, dayMs] = [3_600_000, 86_400_000];
const beganMs = 1_800_000_000_000;
const said = (description: string) => ({ units: "bytes", description, instrument: "COUNTER CUMULATIVE" });
const nothing = { units: "", description: "", instrument: "" };

/** A tenant, and two processes that share what is said of its metrics. */
async function place() {
  const { id: tenantId } = await testTenant(db);
  const process = () => {
    const facts = knownFacts(factStore(db));
    return {
      facts,
      async hears(metric: string, description: string, atMs: number) {
        await facts.refresh(tenantId, atMs);
        if (!facts.learn(tenantId, metric, said(description), atMs)) return false;
        await facts.store(tenantId, new Map([[metric, said(description)]]), atMs);
        return true;
      },
      async knows(metric: string, atMs: number) {
        await facts.refresh(tenantId, atMs);
        return facts.find(tenantId, metric).description;
      },
    };
  };
  return { tenantId, one: process(), other: process() };
}

test("what one process was told of a metric, another one gives to its series", async () => {
  const { tenantId, one, other } = await place();
  expect(await other.knows("io_bytes_total", beganMs)).toBe("");
  const version = other.facts.version(tenantId);
  await one.hears("io_bytes", "Bytes read", beganMs);
  expect(await other.knows("io_bytes_total", beganMs + 9_000)).toBe("");
  expect(await other.knows("io_bytes_total", beganMs + 10_000)).toBe("Bytes read");
  expect(other.facts.version(tenantId)).not.toBe(version);
  const stranger = await place();
  await stranger.one.facts.refresh(stranger.tenantId, beganMs);
  expect(stranger.one.facts.find(stranger.tenantId, "io_bytes_total")).toEqual(nothing);
});

test("it is stored again a quarter of an hour later, not each minute", async () => {
  const { one } = await place();
  const stored = [];
  for (const minute of [0, 1, 14, 15, 16]) stored.push(await one.hears("up", "a", beganMs + minute * 60_000));
  expect(stored).toEqual([true, false, false, true, false]);
});

test("of two texts the first one stays for as long as a process is told it, then another hour", async () => {
  const { one, other } = await place();
  await one.hears("up", "first", beganMs);
  for (const minutes of [1, 50]) {
    await other.hears("up", "second", beganMs + minutes * 60_000);
    await one.hears("up", "first", beganMs + minutes * 60_000 + 1000);
  }
  expect(await other.knows("up", beganMs + hourMs)).toBe("first");
  await other.hears("up", "second", beganMs + 110 * 60_000);
  expect(await one.knows("up", beganMs + 110 * 60_000)).toBe("first");
  await other.hears("up", "second", beganMs + 112 * 60_000);
  expect(await one.knows("up", beganMs + 113 * 60_000)).toBe("second");
});

test("two processes that are told different texts at once agree on one", async () => {
  const { tenantId, one, other } = await place();
  await Promise.all([one.facts.refresh(tenantId, beganMs), other.facts.refresh(tenantId, beganMs)]);
  await one.hears("up", "a", beganMs);
  await other.hears("up", "b", beganMs + 1000);
  expect(await other.knows("up", beganMs + 20_000)).toBe("a");
  expect(await one.knows("up", beganMs + 20_000)).toBe("a");
});

test("what nobody says for a week goes, and a tenant has 20,000 metrics at most", async () => {
  const { tenantId, one } = await place();
  await one.hears("old", "a", beganMs);
  const many = new Map(Array.from({ length: 20_100 }, (_, i) => [`m${String(i).padStart(5, "0")}`, said("a")]));
  await one.facts.store(tenantId, many, beganMs + 8 * dayMs);
  const rows = await db`
    select count(*)::int as count, max(metric) as last, count(*) filter (where metric = 'old')::int as old
    from metric_facts where tenant_id = ${tenantId}`;
  expect(rows).toEqual([{ count: 20_000, last: "m19999", old: 0 }]);
});
