import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createClient, createKey, createTenant } from "../../src/auth/create-tenant.ts";
import { connectOnce } from "../../src/db/connect.ts";
import { migrate } from "../../src/db/migrate.ts";
import { sessionName } from "../../src/db/session-name.ts";
import { startEmbedded } from "../../src/embedded/embedded.ts";
import { clear, clusterPlace, place } from "./place.ts";
import { type ServerProcess, serverProcess } from "./server-process.ts";
import { entitiesWithout, jobsDone, putEntities, startUpdater } from "./updaters.ts";

const entities = 600;
const [leaseMs, standingMs] = [1000, 2500];
const quiet = { info() {}, warn() {}, error: console.error };
const dataDir = await clusterPlace();
const postgres = await startEmbedded({ dataDir, log: quiet });
await migrate(postgres.url);
const { sql, close } = connectOnce(postgres.url, "updaters");
const tenant = await createTenant(sql, "updaters");
const client = await createClient(sql, tenant.id, { name: "manager", type: "USER", role: "manager" });
const { text } = await createKey(sql, tenant.id, client.id, { description: "", expiresMs: null });
const headers = { "service-api-key": text };

const servers: ServerProcess[] = [];
const ownDirs: string[] = [];
for (let i = 0; i < 2; i++) {
  const ownDir = await place();
  ownDirs.push(ownDir);
  servers.push(
    await serverProcess({
      BELFRY_DATA_DIR: ownDir,
      DATABASE_URL: postgres.url,
      TEST_LIMITS: JSON.stringify({ jobLeaseMs: leaseMs }),
    }),
  );
}
const [one, two] = servers as [ServerProcess, ServerProcess];

beforeAll(async () => {
  await Promise.all(servers.map((server) => server.start()));
  await putEntities(one.url, headers, 0, entities);
});

afterAll(async () => {
  for (const server of servers) await server.stop();
  await close();
  await postgres.stop("immediate");
  for (const dir of [dataDir, ...ownDirs]) await clear(dir);
});

let made = 0;
let known = entities;

/** Puts entities that are not there yet. */
async function putNew(server: ServerProcess, count: number): Promise<void> {
  const from = known;
  known += count;
  await putEntities(server.url, headers, from, known);
}

/** Starts an updater over all entities; returns its name. */
async function begin(server: ServerProcess): Promise<string> {
  const name = `updater ${++made}`;
  await startUpdater(server.url, headers, name);
  return name;
}

async function allRight(name: string) {
  await jobsDone(sql, 90_000);
  expect(await entitiesWithout(sql, tenant.id, name)).toBe(0);
  expect(servers.flatMap(({ complaints }) => complaints)).toEqual([]);
}

describe("in the end every entity is right and no job is left", () => {
  test.each(["jobs:claimed", "jobs:run", "jobs:finished"])("when a server dies at %s beside another", async (point) => {
    await one.arm({ points: { [point]: { act: "die", at: 3 } } });
    const name = await begin(one);
    await putNew(two, 250);
    // The other may take most of the jobs: there are new ones until this one has had its third.
    const ended = one.ended().then(() => true);
    while (!(await Promise.race([ended, sleep(100, false)]))) await putNew(two, 50);
    await putNew(two, 250);
    await one.start();
    await allRight(name);
  });

  test("when the only server is killed in the middle, more than once", async () => {
    await two.kill();
    const name = await begin(one);
    for (let i = 0; i < 2; i++) {
      await sleep(200 + 250 * i);
      await one.kill();
      await one.start();
      await putNew(one, 300);
    }
    await two.start();
    await allRight(name);
  });

  test("when a server stands still for longer than its leases, and comes back to what another has done", async () => {
    await one.arm({ points: { "jobs:run": { act: "hold", at: 4, holdMs: standingMs } } });
    const name = await begin(one);
    const leased = async () => (await sql`select from jobs where lease_until_ms > 0`).count;
    await expect.poll(leased).toBeGreaterThan(0);
    await putNew(two, 300).catch(() => undefined);
    await sleep(standingMs);
    await one.arm({});
    await putEntities(two.url, headers, 0, known);
    await allRight(name);
  });

  test("when statements are asked to run again, and the database goes away for a moment", async () => {
    await one.arm({ seed: 7, points: { "*": { act: "fail", probability: 0.05 } } });
    await two.arm({ seed: 8, points: { "*": { act: "fail", probability: 0.05 } } });
    const name = await begin(two).catch(() => begin(two));
    const left = () => entitiesWithout(sql, tenant.id, name);
    await expect.poll(left).toBeLessThan(known * 0.75);
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${sessionName()}`;
    await expect.poll(left).toBeLessThan(known * 0.25);
    for (const server of servers) await server.arm({});
    await allRight(name);
  });
});
