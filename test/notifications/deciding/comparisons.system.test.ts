import { expect, test } from "vitest";
import { testServer } from "../../support/server.ts";
import { testTenant } from "../../support/tenant.ts";

const server = await testServer();
const { sql } = server.database;

/** A tenant that writes triggers and rules through the API. */
async function tenant() {
  const made = await testTenant(sql);
  async function call(method: string, path: string, body: object) {
    const answer = await fetch(`${server.url}/v1/notification/${path}`, {
      method,
      headers: { ...made.headers, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const { code, message } = (await answer.json()) as { code?: number; message?: string };
    return { status: answer.status, code, message, retryAfter: answer.headers.get("retry-after") };
  }
  const clause = (texts: number, beside: object[] = []) => {
    const contains = Array.from({ length: texts }, (_, i) => ({ contains: { field: "body", value: `needle ${i}` } }));
    return beside.length === 0 ? { or: { clauses: contains } } : { and: { clauses: [...beside, ...contains] } };
  };
  const type = (...of: Parameters<typeof clause>) => ({ event: { query: { clause: clause(...of) } } });
  const api = {
    ...made,
    call,
    trigger: (name: string, ...of: Parameters<typeof clause>) => call("POST", "triggers", { name, type: type(...of) }),
    change: (name: string, ...of: Parameters<typeof clause>) =>
      call("PUT", `triggers/${name}`, { name, type: type(...of) }),
    rule: (name: string, triggerNames: string[], more: object = {}) =>
      call("POST", "rules", { name, enabled: true, triggerNames, destinationNames: ["d"], ...more }),
    put: (name: string, triggerNames: string[], more: object = {}) =>
      call("PUT", `rules/${name}`, { name, enabled: true, triggerNames, destinationNames: ["d"], ...more }),
    async full() {
      const names = Array.from({ length: 20 }, (_, i) => `full ${i}`);
      for (const name of names) await api.trigger(name, 999);
      await call("POST", "destinations", { name: "d", type: { webhook: { url: "https://hooks.example.com/" } } });
      expect(await api.rule("full", names)).toMatchObject({ status: 200 });
      return names;
    },
  };
  return api;
}
const fine = { status: 200 };
/** 20 triggers of 999 texts are there. */
const refused = (texts: number) => ({
  status: 429,
  code: 8,
  message: `the enabled rules of the tenant would compare each event with ${19_980 + texts} texts; 20000 are allowed: disable some, or let their triggers need an equality`,
  retryAfter: null,
});

test("a rule or trigger that would make enabled rules compare an event with more than 20,000 texts is refused", async () => {
  const { full, trigger, change, rule, put } = await tenant();
  await full();
  expect(await trigger("20", 20)).toMatchObject(fine);
  expect(await trigger("21", 21)).toMatchObject(fine);
  expect(await rule("one", ["21"])).toEqual(refused(21));
  expect(await rule("one", ["20"])).toMatchObject(fine);
  expect(await change("20", 21)).toEqual(refused(21));
  expect(await rule("off", ["21"], { enabled: false })).toMatchObject(fine);
  expect(await put("off", ["21"])).toEqual(refused(41));
  expect(await put("one", ["20", "21"])).toEqual(refused(41));
  expect(await change("20", 1)).toMatchObject(fine);
  expect(await put("off", ["21"], { enabled: false })).toMatchObject(fine);
});

test("what an index decides does not count, nor does what no enabled rule uses, or sends nowhere", async () => {
  const { full, trigger, rule } = await tenant();
  await full();
  await trigger("needs an equality", 900, [{ equals: { field: "name", value: { stringVal: "disk full" } } }]);
  expect(await rule("a", ["needs an equality"])).toMatchObject(fine);
  await trigger("999", 999);
  expect(await rule("b", ["999"], { destinationNames: [] })).toMatchObject(fine);
  expect(await rule("c", ["999"])).toEqual(refused(999));
});

test("of two writes at once that would pass the bound together one is refused", async () => {
  const { full, trigger, rule } = await tenant();
  await full();
  for (const name of ["a", "b", "c", "d"]) await trigger(name, 15);
  const all = await Promise.all(["a", "b", "c", "d"].map((name) => rule(name, [name])));
  expect(all.map(({ status }) => status).sort()).toEqual([200, 429, 429, 429]);
});

test("what was stored before stays, and may become less; it counts for what comes", async () => {
  const { id, full, trigger, rule, change, put } = await tenant();
  const names = await full();
  await trigger("old", 999);
  await sql`update triggers set comparisons = null where tenant_id = ${id}`;
  await sql`
    insert into rule_triggers (tenant_id, rule_name, trigger_name, place) values (${id}, 'full', 'old', 20)`;
  // As a 0.3.0 server does in its transaction.
  await sql`update tenant_counts set count = 0 where tenant_id = ${id} and what = 'comparisons'`;
  await trigger("1", 1);
  expect(await rule("one more", ["1"])).toEqual(refused(1000));
  expect(await put("full", [...names, "old"])).toMatchObject(fine);
  expect(await change("old", 998)).toMatchObject(fine);
  expect(await change("old", 999)).toEqual(refused(999));
});
