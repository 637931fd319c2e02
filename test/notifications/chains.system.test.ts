import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const first = await testServer();
const { sql } = first.database;

/** A tenant whose rules make an event of every event, also of those that others have made. */
async function chained(rules: number) {
  const tenant = await testTenant(sql);
  async function call(path: string, body: object) {
    const answer = await fetch(`${first.url}/v1/${path}`, {
      method: "POST",
      headers: { ...tenant.headers, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const said = await answer.json();
    expect({ status: answer.status, said }).toMatchObject({ status: 200 });
    return said;
  }
  const clause = { greaterAndEquals: { field: "severity", value: { numberVal: 0 } } };
  await call("notification/triggers", { name: "all", type: { event: { query: { clause } } } });
  const templates = {
    nameTemplate: "{{{rule.name}}} of {{{event.name}}}",
    typeTemplate: "made",
    summaryTemplate: "made",
  };
  const event = { ...templates, severity: "SEVERITY_INFO" };
  const names = Array.from({ length: rules }, (_, i) => `r${i}`);
  for (const name of names) await rule(name, "all");
  // A destination each: through one all rules report the same event.
  async function rule(name: string, trigger: string) {
    await call("notification/destinations", { name, type: { event } });
    await call("notification/rules", { name, enabled: true, triggerNames: [trigger], destinationNames: [name] });
  }

  const put = (...sent: string[]) =>
    call("data-receiver/events", {
      events: sent.map((name, i) => ({ name, timestamp: String(Date.now() - i), dimensions: { source: "a" } })),
    });
  /** The events that were made of one, and what rules say of those that were not, when nothing waits any more. */
  async function made(name: string) {
    for (;;) {
      const [row] = await sql<{ left: number }[]>`
        select ((select count(*) from due_deliveries where tenant_id = ${tenant.id})
          + (select count(*) from feed f join feed_cursors c on c.tenant_id = f.tenant_id and f.position > c.position
            where f.tenant_id = ${tenant.id}))::int4 as left`;
      if (row?.left === 0) break;
      await sleep(50);
    }
    const events = await sql<{ name: string }[]>`
      select name from events where tenant_id = ${tenant.id} and name like ${`% of ${name}`}`;
    return events.map((event) => event.name);
  }
  const summaries = () => sql<{ rule: string; error: string }[]>`
    select rule_name as rule, error from delivery_history
    where tenant_id = ${tenant.id} and status = 'SUMMARISED' order by rule_name`;
  return { tenant, names, rule, call, put, made, summaries };
}

test("of one event rules make at most 100 events, and one delivery a rule says how many more", async () => {
  const { names, put, made, summaries, tenant } = await chained(10);
  await put("cause");
  const events = await made("cause");
  expect(events).toHaveLength(100);
  const told = await summaries();
  expect(told.map(({ rule }) => rule)).toEqual(names);
  const more = told.map(({ error }) => Number(/^chained: (\d+) more events were not made/.exec(error)?.[1]));
  // Each rule follows each event but those that it has led to itself; five deep none does.
  const followers = ["cause", ...events]
    .map((name) => name.split(" of ").length - 1)
    .map((deep) => (deep < 5 ? 10 - deep : 0));
  const sum = (all: readonly number[]) => all.reduce((total, each) => total + each, 0);
  expect(100 + sum(more)).toBe(sum(followers));
  const shown = await fetch(`${first.url}/v1/notification/deliveries?status=SUMMARISED&rule=r0`, {
    headers: tenant.headers,
  });
  expect(await shown.json()).toMatchObject({
    deliveries: [{ rule: "r0", status: "SUMMARISED", error: told[0]?.error }],
  });
});

test("each event from outside counts for itself, and within the bound nothing is left out", async () => {
  const { put, made, summaries } = await chained(3);
  const causes = Array.from({ length: 12 }, (_, i) => `cause ${i}`);
  await put(...causes);
  // 3, then 6, then 6: no rule follows itself.
  for (const name of causes) expect(await made(name)).toHaveLength(15);
  expect(await summaries()).toEqual([]);
});

test("what a management call changes counts together", async () => {
  const { tenant, rule, call, put, made, summaries } = await chained(1);
  const causes = Array.from({ length: 110 }, (_, i) => `cause ${i}`);
  await put(...causes);
  for (const name of causes) expect(await made(name)).toHaveLength(1);
  const clause = { equals: { field: "status", value: { stringVal: "STATUS_CLOSED" } } };
  await call("notification/triggers", { name: "closed", type: { event: { query: { clause } } } });
  await rule("closing", "closed");
  const found = (await call("events:search", { query: { pageInput: { limit: 1000 } } })) as {
    results: { id: string; name: string; occurrences: { id: string }[] }[];
  };
  const items = found.results.flatMap(({ id, name, occurrences }) =>
    name.startsWith("cause")
      ? [{ eventId: id, occurrenceId: occurrences[0]?.id, statusWrapper: { status: "STATUS_CLOSED" } }]
      : [],
  );
  expect(items).toHaveLength(110);
  const count = () => sql<{ events: number }[]>`
    select count(*)::int4 as events from events where tenant_id = ${tenant.id}`;
  const [before] = await count();
  await call("event-management/status", { statuses: items });
  await made("none");
  const [after] = await count();
  expect((after?.events ?? 0) - (before?.events ?? 0)).toBe(100);
  expect((await summaries()).map(({ error }) => error)).toContainEqual(
    expect.stringMatching(/^chained: \d+ more events/),
  );
});
