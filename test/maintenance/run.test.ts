import { describe, expect, test, vi } from "vitest";
import { entityId, idText } from "../../src/entities/identity.ts";
import { lockWindows } from "../../src/maintenance/rows.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;
const path = "modelcontext/maintwindows";
const hourMs = 3_600_000;
// Each waits for what happens in the background, more than once.
vi.setConfig({ testTimeout: 60_000 });

/** A tenant with entities: a host with two disks, one of which has a part; another host; one that is decommissioned. */
async function newWorld() {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  async function send(method: string, place: string, body: unknown) {
    const answer = await call(method, `/v1/${place}`, body);
    if (answer.status !== 200) throw new Error(`${place} answers ${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }
  const put = (source: string, metadataFields: object = {}) =>
    send("POST", "data-receiver/models", {
      models: [{ timestamp: Date.now(), dimensions: { source }, metadataFields }],
    });
  await put("host", { productionState: 400 });
  await put("disk 1", { parent: "source=host" });
  await put("disk 2", { parent: "source=host" });
  await put("part", { parent: "source=disk 2" });
  await put("other");
  await put("gone", { productionState: -1 });
  const idOf = (source: string) => idText(entityId(tenant.id, { source }));

  /** What an entity search answers. */
  async function states(): Promise<Record<string, number>> {
    const all = { filter: { field: "source", operation: "OP_EXISTS" } };
    const { entities } = await send("POST", "modelcontext/entities:search", {
      search_input: { query: { clause: all } },
    });
    const found = entities.entities as { dimensions: { source: string }; productionState: string }[];
    return Object.fromEntries(
      found.map(({ dimensions, productionState }) => [dimensions.source, Number(productionState)]),
    );
  }
  /** Waits until the production states are these, beside those that the models name. */
  async function become(expected: Record<string, number>) {
    const whole = { host: 400, "disk 1": 1000, "disk 2": 1000, part: 1000, other: 1000, gone: -1, ...expected };
    await expect.poll(states, { interval: 50 }).toEqual(whole);
  }
  const specification = (more: object = {}) => ({
    name: "window",
    schedule: { start: Date.now() + hourMs, duration: hourMs },
    runMode: "MANUAL",
    maintenanceState: 300,
    withIds: { ids: [idOf("host")] },
    ...more,
  });
  const create = async (more: object = {}) =>
    (await send("POST", path, { specification: specification(more) })).id as string;
  const replace = (id: string, more: object) => send("PUT", path, { id, specification: specification(more) });
  const act = (verb: string, id: string) => send("POST", `${path}:${verb}`, { id });
  const remove = (...ids: string[]) => send("POST", `${path}:deleteBulk`, { ids });
  const shown = async () => (await send("POST", `${path}:list`, {})).maintWindows[0];
  return { tenant, put, idOf, become, states, create, replace, act, remove, shown };
}

const family = (state: number) => ({ host: state, "disk 1": state, "disk 2": state, part: state });

describe("while a window runs, its entities have its state, and afterwards their own again", () => {
  test("by its schedule, neither start nor end before its time", async () => {
    const { create, become, shown } = await newWorld();
    const start = Date.now() + 1500;
    await create({ runMode: "AUTO", schedule: { start, duration: 2000 } });
    expect(await shown()).toMatchObject({ runState: "SCHEDULED", nextStart: `${start}` });
    await expect.poll(async () => (await shown()).runState, { interval: 20 }).toBe("IN_PROGRESS");
    const startedMs = Date.now();
    await become(family(300));
    await expect.poll(async () => (await shown()).runState, { interval: 20 }).toBe("COMPLETED");
    const endedMs = Date.now();
    await become({});
    expect(startedMs).toBeGreaterThanOrEqual(start);
    expect(endedMs).toBeGreaterThanOrEqual(start + 2000);
  });

  test("without children when it says so, and decommissioned ones only by force", async () => {
    const { create, become, act, replace, idOf } = await newWorld();
    const both = { withIds: { ids: [idOf("host"), idOf("gone")] } };
    const id = await create({ ...both, doNotPropagateToChildren: true });
    await act("start", id);
    await become({ host: 300 });
    await replace(id, { ...both, force: true });
    await become({ ...family(300), gone: 300 });
    await act("stop", id);
    await become({});
  });

  test("and one that is created within its time starts at once", async () => {
    const { create, become } = await newWorld();
    await create({ runMode: "AUTO", schedule: { start: Date.now() - hourMs, duration: 2 * hourMs } });
    await become(family(300));
  });
});

describe("a window that runs", () => {
  test("takes over other entities and another state at once", async () => {
    const { create, become, act, replace, idOf } = await newWorld();
    const id = await create();
    await act("start", id);
    await become(family(300));
    await replace(id, { maintenanceState: 301, withIds: { ids: [idOf("disk 2"), idOf("other")] } });
    await become({ "disk 2": 301, part: 301, other: 301 });
  });

  test("keeps entities that its query finds by the state that it changes", async () => {
    const { create, become, act, replace } = await newWorld();
    const filter = { field: "productionState", operation: "OP_EQUALS", value: 1000 };
    const inProduction = { withIds: undefined, query: { clause: { filter } } };
    const id = await create(inProduction);
    await act("start", id);
    await become({ "disk 1": 300, "disk 2": 300, part: 300, other: 300 });
    await replace(id, { ...inProduction, maintenanceState: 301 });
    await become({ "disk 1": 301, "disk 2": 301, part: 301, other: 301 });
  });

  test.each<[string, (world: Awaited<ReturnType<typeof newWorld>>, id: string) => Promise<unknown>]>([
    ["is stopped", ({ act }, id) => act("stop", id)],
    ["is deleted", ({ remove }, id) => remove(id)],
    ["is disabled", ({ replace }, id) => replace(id, { status: "DISABLED" })],
  ])("gives its entities back when it %s", async (_, end) => {
    const world = await newWorld();
    const id = await world.create();
    await world.act("start", id);
    await world.become(family(300));
    await end(world, id);
    await world.become({});
  });

  test("leaves its exit state, until a model names another state than before", async () => {
    const { create, become, act, put } = await newWorld();
    const id = await create({ exitState: 500, overrideExitState: true, doNotPropagateToChildren: true });
    await act("start", id);
    await become({ host: 300 });
    await act("stop", id);
    await become({ host: 500 });
    await put("host", { productionState: 400, note: "the same state again" });
    await become({ host: 500 });
    await put("host", { productionState: 401 });
    await become({ host: 401 });
  });
});

describe("windows over the same entities", () => {
  test("the one that started last rules until it ends, then the one before it", async () => {
    const { create, become, act, idOf } = await newWorld();
    const first = await create({ name: "first" });
    const second = await create({ name: "second", maintenanceState: 302, withIds: { ids: [idOf("disk 2")] } });
    await act("start", first);
    await act("start", second);
    await become({ ...family(300), "disk 2": 302, part: 302 });
    await act("stop", second);
    await become(family(300));
    await act("start", second);
    await act("stop", first);
    await become({ "disk 2": 302, part: 302 });
    await act("stop", second);
    await become({});
  });
});

test("windows whose time has come are read without their clauses, which may hold megabytes", async () => {
  const { tenant, create } = await newWorld();
  const [row] = await lockWindows(sql, tenant.id, [await create()]);
  expect(row).toMatchObject({ name: "window", schedule: {}, notification: null });
  expect(row).not.toHaveProperty("clause");
});

test("a state that a model names meanwhile is the one to go back to", async () => {
  const { create, become, act, put } = await newWorld();
  const id = await create({ doNotPropagateToChildren: true });
  await act("start", id);
  await become({ host: 300 });
  await put("host", { productionState: 500 });
  await put("other", { productionState: 450 });
  await become({ host: 300, other: 450 });
  await act("stop", id);
  await become({ host: 500, other: 450 });
});
