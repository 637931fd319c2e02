import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { startAlertmanager } from "../faults/alerts.ts";
import { cases, seed } from "../support/cases.ts";
import { temporaryDir } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { tool } from "./calls.ts";
import { installed } from "./programs.ts";

type Json = Record<string, unknown>;

const hours = fc.integer({ min: -3, max: 5 });
const matcher = fc.record({
  name: fc.constantFrom("a", "b", "job"),
  value: fc.constantFrom("", "x", "y", "x|y", "(", ".*", 'say "hi"'),
  isRegex: fc.boolean(),
  isEqual: fc.constantFrom(true, false, undefined),
});
/** What is true of the empty text alone is refused by other rules there. */
const positive = { name: "alertname", value: "A", isRegex: false };
const silence = fc.record({
  matchers: fc.oneof(
    { weight: 6, arbitrary: fc.array(matcher, { maxLength: 2 }).map((some) => [positive, ...some]) },
    { weight: 1, arbitrary: fc.constant([{ name: "a", value: "", isRegex: false }]) },
  ),
  startHour: hours,
  endHour: hours,
  comment: fc.constantFrom("c", "d"),
  createdBy: fc.constantFrom("", "me"),
  id: fc.option(fc.nat(20)),
});
const call = fc.oneof(
  { weight: 4, arbitrary: silence.map((value) => ({ what: "post" as const, value })) },
  { weight: 2, arbitrary: fc.nat(20).map((value) => ({ what: "delete" as const, value })) },
  { weight: 2, arbitrary: fc.nat(20).map((value) => ({ what: "get" as const, value })) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom("", '?filter=alertname%3D"A"', "?filter=a%3D~x", "?filter=(")
      .map((value) => ({ what: "list" as const, value })),
  },
);

const unknown = "0a1f6d2e-6d0b-4a55-9c3a-6f3f5a2b7c10";

const isInstalled = installed("prometheus-alertmanager", "amtool");

describe.skipIf(!isInstalled)("Debian's Alertmanager beside this one", async () => {
  const stack = new AsyncDisposableStack();
  afterAll(() => stack.disposeAsync());
  // A block that is skipped is read all the same.
  const there = isInstalled ? await startAlertmanager(stack, [], { "service-api-key": "none" }) : "";
  const server = await testServer();
  const { headers } = await testTenant(server.database.sql);
  const here = tool(server, headers);
  /** Ids that mean one silence, there and here. */
  const ids: [string, string][] = [];

  async function askThere(method: string, path: string, body?: unknown) {
    const answer = await fetch(`${there}/api/v2${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? "" : JSON.parse(text) };
  }

  /** A silence with the ids and times masked that no two servers share. */
  function masked(each: Json, side: 0 | 1) {
    const { id, updatedAt: _, startsAt, endsAt, matchers, ...others } = each;
    const hour = (time: unknown) => Math.round(Date.parse(String(time)) / 60_000);
    const sorted = (matchers as Json[]).map((one) => JSON.stringify(Object.entries(one).sort())).sort();
    return {
      ...others,
      place: ids.findIndex((pair) => pair[side] === id),
      matchers: sorted,
      times: [hour(startsAt), hour(endsAt)],
    };
  }
  const answered = ({ status, body }: { status: number; body: unknown }, side: 0 | 1) => {
    if (status !== 200) return { status, kind: typeof body };
    if (Array.isArray(body)) return { status, list: body.map((each) => JSON.stringify(masked(each, side))).sort() };
    return typeof body === "object" && body !== null && "matchers" in body
      ? { status, one: masked(body as Json, side) }
      : { status };
  };

  /** Makes a call there and here. Of ends 0.25 answers 500 where later ones have 404, or say that it has ended already. */
  async function both(each: typeof call extends fc.Arbitrary<infer T> ? T : never, at: (hour: number) => string) {
    const pair = (place: number) => ids[place % (ids.length + 1)] ?? ([unknown, unknown] as const);
    if (each.what === "list")
      return [
        await askThere("GET", `/silences${each.value}`),
        await here("GET", `/api/v2/silences${each.value}`),
      ] as const;
    if (each.what === "post") {
      const { startHour, endHour, id, ...more } = each.value;
      const body = { ...more, startsAt: at(startHour), endsAt: at(endHour) };
      // There a change that is refused for its matchers ends the silence all the same.
      const sent: readonly { name: string; value: string; isRegex: boolean }[] = more.matchers;
      const broken = sent.some(({ value, isRegex }) => isRegex && value === "(");
      const isRefused = broken || !sent.includes(positive);
      const [a, b] = id === null || isRefused ? [] : pair(id);
      const ours = await here("POST", "/api/v2/silences", { ...body, ...(b && { id: b }) });
      return [await askThere("POST", "/silences", { ...body, ...(a && { id: a }) }), ours] as const;
    }
    const [a, b] = pair(each.value);
    const method = each.what === "get" ? "GET" : "DELETE";
    const theirs = await askThere(method, `/silence/${a}`);
    const ours = await here(method, `/api/v2/silence/${b}`);
    if (theirs.status !== 500) return [theirs, ours] as const;
    return [{ ...theirs, status: String(theirs.body).includes("already expired") ? 200 : 404 }, ours] as const;
  }

  test(`answers the same to random calls (seed ${seed})`, async () => {
    const nowMs = Date.now();
    const at = (hour: number) => new Date(nowMs + hour * 3_600_000 + 1_800_000).toISOString();
    for (const each of fc.sample(call, { numRuns: cases(2000), seed })) {
      const [theirs, ours] = await both(each, at);
      const [a, b] = [theirs, ours].map(({ body }) => (body as { silenceID?: string } | null)?.silenceID);
      if (a !== undefined && b !== undefined) {
        expect(ids.findIndex(([known]) => known === a)).toBe(ids.findIndex(([, known]) => known === b));
        if (!ids.some(([known]) => known === a)) ids.push([a, b]);
      }
      expect(answered(ours, 1), JSON.stringify([each, theirs.body, ours.body])).toEqual(answered(theirs, 0));
    }
    expect(ids.length).toBeGreaterThan(20);
  });

  test("amtool adds, lists, changes, imports and ends silences", async () => {
    const { headers: own } = await testTenant(server.database.sql);
    const config = join(temporaryDir(), "http.yml");
    writeFileSync(config, JSON.stringify({ authorization: { credentials: own["service-api-key"] } }));
    const amtool = async (...args: string[]) =>
      (
        await promisify(execFile)("amtool", [
          `--alertmanager.url=${server.url}`,
          `--http.config.file=${config}`,
          ...args,
        ])
      ).stdout.trim();
    const query = async (...args: string[]) =>
      JSON.parse(await amtool("silence", "query", "-o", "json", ...args)) as Json[];
    const id = await amtool(
      "silence",
      "add",
      "--comment=disks",
      "--duration=2h",
      "--author=me",
      "alertname=DiskFull",
      "instance=~web-.+",
    );
    const [added] = await query();
    expect(added).toMatchObject({
      id,
      comment: "disks",
      createdBy: "me",
      status: { state: "active" },
      matchers: [
        { name: "alertname", value: "DiskFull", isRegex: false, isEqual: true },
        { name: "instance", value: "web-.+", isRegex: true, isEqual: true },
      ],
    });
    expect(await query("alertname=DiskFull")).toHaveLength(1);
    expect(await query("alertname=Other")).toHaveLength(0);
    const updated = await amtool("silence", "update", "--duration=4h", "--comment=more disks", id);
    expect(updated).toContain(id);
    expect(await query()).toMatchObject([{ id, comment: "more disks" }]);
    const file = join(temporaryDir(), "silences.json");
    writeFileSync(file, JSON.stringify((await query()).map(({ id: _, ...each }) => each)));
    await amtool("silence", "import", "--force", file);
    expect(await query()).toHaveLength(2);
    await amtool("silence", "expire", id);
    expect(await query()).toHaveLength(1);
    expect(await query("--expired")).toMatchObject([{ id, status: { state: "expired" } }]);
  });
});
