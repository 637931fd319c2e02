import { describe, expect, test, vi } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;
const path = "/v1/modelcontext/maintwindows";
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

async function newTenant() {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  return { tenant, call, post: (verb: string, body: unknown) => call("POST", path + verb, body) };
}

const clause = { filter: { field: "dimensions.site", operation: "OP_EQUALS", value: "north" } };
const berlin = "Europe/Berlin";
const nextChange = Temporal.Now.zonedDateTimeISO(berlin).getTimeZoneTransition("next") as Temporal.ZonedDateTime;
/** Two in the morning of the day before the next change of the clock. */
const start = nextChange.subtract({ days: 1 }).with({ hour: 2, minute: 0 }).epochMilliseconds;
const specification = (more: object = {}) => ({
  name: "patches",
  schedule: { start, duration: hourMs, timeZone: berlin, recurrence: { type: 3, interval: 1 } },
  maintenanceState: 300,
  query: { clause },
  ...more,
});

/** A rack with two hosts of the site, one decommissioned, and a disk of one of them that is of no site. */
async function withEntities() {
  const one = await newTenant();
  const model = (dimensions: object, metadataFields: object) => ({ timestamp: Date.now(), dimensions, metadataFields });
  await one.call("POST", "/v1/data-receiver/models", {
    models: [
      model({ source: "web-1", site: "north" }, { name: "web-1" }),
      model({ source: "web-2", site: "north" }, { name: "web-2", productionState: -1 }),
    ],
  });
  const search = {
    search_input: { query: { clause: { filter: { field: "name", operation: "OP_EQUALS", value: "web-1" } } } },
  };
  const { body } = await one.call("POST", "/v1/modelcontext/entities:search", search);
  const parent = body.entities.entities[0].id;
  const disk = model({ source: "disk", _svc_parent_entity_id: parent }, { name: "disk" });
  await one.call("POST", "/v1/data-receiver/models", { models: [disk] });
  return one;
}

describe("a window that is not stored yet", () => {
  test("has the runs that it would have, by the clock of its zone, and what a change of the clock does", async () => {
    const { post } = await newTenant();
    const timeRange = { start, end: start + 2.5 * dayMs };
    const { status, body } = await post(":preview", { specification: specification(), timeRange });
    expect(status).toBe(200);
    const local = (day: number) => nextChange.subtract({ days: 1 }).add({ days: day }).with({ hour: 2, minute: 0 });
    expect(body.runs.map(({ localStart }: { localStart: string }) => localStart)).toEqual(
      [0, 1, 2].map((day) => local(day).toString({ timeZoneName: "never" })),
    );
    for (const run of body.runs) {
      expect(Date.parse(run.localStart)).toBe(Number(run.start));
      expect(Date.parse(run.localEnd)).toBe(Number(run.end));
      expect(Number(run.end) - Number(run.start)).toBe(hourMs);
    }
    const { clockChange } = body;
    expect(Number(clockChange.time)).toBe(nextChange.epochMilliseconds);
    expect(clockChange.localAfter).toBe(nextChange.toString({ timeZoneName: "never" }));
    expect(clockChange.localBefore.slice(-6)).toBe(nextChange.subtract({ seconds: 1 }).offset);
    expect(Number(clockChange.before.start)).toBeLessThan(nextChange.epochMilliseconds);
    expect(clockChange.after).toHaveLength(2);
  });

  test("is asked about at most 1000 days ahead", async () => {
    const { post } = await newTenant();
    const timeRange = { start: Date.now() + 1001 * dayMs };
    const { status, body } = await post(":preview", { specification: specification(), timeRange });
    expect(status).toBe(400);
    expect(body.message).toContain("timeRange.start: must be at most 1000 days ahead");
  });

  test("counts the entities that it would take in: children, but none that is decommissioned, unless it is forced", async () => {
    const { post } = await withEntities();
    const seen = async (more: object) => {
      const { body } = await post(":preview", { specification: specification(more) });
      const { count, entities } = body.targets;
      return {
        count,
        names: entities.map(({ name, child }: { name: string; child: boolean }) => name + (child ? "+" : "")).sort(),
      };
    };
    expect(await seen({})).toEqual({ count: "2", names: ["disk+", "web-1"] });
    expect(await seen({ doNotPropagateToChildren: true })).toEqual({ count: "1", names: ["web-1"] });
    expect(await seen({ force: true })).toEqual({ count: "3", names: ["disk+", "web-1", "web-2"] });
  });

  test("is refused where creating it would be, with the same words", async () => {
    const { post } = await newTenant();
    for (const more of [
      { schedule: { start: Date.now() - 2 * dayMs, duration: hourMs } },
      { schedule: { start, duration: hourMs, timeZone: "Mars" } },
      { notification: { message: "at work", rules: ["unknown"] } },
      { query: { clause: { filter: { field: "name", operation: "OP_REGEX", value: "(" } } } },
    ]) {
      const preview = await post(":preview", { specification: specification(more) });
      expect(preview.status).toBe(400);
      expect(preview.body).toEqual((await post("", { specification: specification(more) })).body);
    }
    expect(await post(":preview", {})).toMatchObject({ status: 400, body: { code: 3 } });
  });

  test("has no more runs than were asked for, and says that there are more", async () => {
    const { post } = await newTenant();
    const { body } = await post(":preview", { specification: specification(), runsMax: 2 });
    expect(body.runs).toHaveLength(2);
    expect(body.moreRuns).toBe(true);
  });
});

type Post = Awaited<ReturnType<typeof newTenant>>["post"];

/** What is seen of a window as soon as it holds this many entities. */
const previewed = (post: Post, id: string, heldCount: string) =>
  vi.waitFor(
    async () => {
      const { body } = await post(":preview", { id });
      expect(body.heldCount).toBe(heldCount);
      return body;
    },
    { timeout: 20_000 },
  );

describe("a stored window", () => {
  test("begins and ends as was foretold, and holds what was foretold", async () => {
    const { post } = await withEntities();
    const now = Date.now();
    const schedule = { start: now - hourMs, duration: 2 * hourMs };
    const { body: foretold } = await post(":preview", { specification: specification({ schedule }) });
    const { body: made } = await post("", { specification: specification({ schedule }) });
    const held = await previewed(post, made.id, "2");
    expect(held.runs).toEqual(foretold.runs);
    expect(held.held.map(({ name }: { name: string }) => name).sort()).toEqual(["disk", "web-1"]);
    // What the window does itself changes nothing about which entities it is for.
    expect(held.targets).toEqual(foretold.targets);
    const listed = await post(":runs", { ids: [made.id, "unknown"] });
    expect(listed.body.windows).toEqual([{ id: made.id, runs: foretold.runs, more: false, heldCount: "2" }]);
    await post(":stop", { id: made.id });
    const after = await previewed(post, made.id, "0");
    expect(after).toMatchObject({ runs: [], held: [], clockChange: null });
  });

  test("is looked at after a change that is not stored: a run that goes on keeps its start", async () => {
    const { post } = await newTenant();
    const schedule = { start: Date.now() - hourMs, duration: 2 * hourMs };
    const { body: made } = await post("", { specification: specification({ schedule }) });
    const [run] = (await post(":runs", { ids: [made.id] })).body.windows[0].runs;
    const longer = { ...schedule, duration: 3 * hourMs };
    const { body } = await post(":preview", { id: made.id, specification: specification({ schedule: longer }) });
    expect(body.runs).toEqual([expect.objectContaining({ start: run.start, end: `${Number(run.end) + hourMs}` })]);
    const renamed = { id: made.id, specification: specification({ schedule, name: "other" }) };
    const refused = await post(":preview", renamed);
    expect(refused).toMatchObject({ status: 400, body: { code: 3 } });
    expect(refused.body.message).toContain("specification.name: cannot be changed");
    const disabled = specification({ schedule, status: "DISABLED" });
    expect((await post(":preview", { id: made.id, specification: disabled })).body.runs).toEqual([]);
  });

  test("that is skipped next has the runs after that", async () => {
    const { post } = await newTenant();
    const schedule = { ...specification().schedule, skipNext: 2 };
    const { body: made } = await post("", { specification: specification({ schedule }) });
    const later = nextChange.add({ days: 1 }).with({ hour: 2, minute: 0 });
    const { body } = await post(":runs", { ids: [made.id], runsMax: 1 });
    expect(body.windows[0]).toMatchObject({ more: true, runs: [{ start: `${later.epochMilliseconds}` }] });
  });
});

describe("who may look", () => {
  test("what is unknown is code 5, and no ids are code 3", async () => {
    const { post } = await newTenant();
    expect(await post(":preview", { id: "unknown" })).toMatchObject({ status: 404, body: { code: 5 } });
    expect(await post(":runs", { ids: [] })).toMatchObject({ status: 400, body: { code: 3 } });
  });
});
