import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { httpReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const receiver = await httpReceiver();

/** A tenant with a ticket system, a rule for all that is a warning or worse, and one for what is critical. */
async function ticketPlace() {
  const tenant = await testTenant(server.database.sql);
  const call = v1(server.url, tenant.headers);
  const ok = async (verb: string, path: string, body?: object) => {
    const answer = await call(verb, path, body);
    expect(answer).toMatchObject({ status: 200 });
    return answer.body as object;
  };
  const made = (path: string, body: object) => ok("POST", `/v1/notification/${path}`, body);
  const states: string[] = [];
  receiver.answer(({ method: verb, body }, response) => {
    const result = verb === "GET" ? [] : { sys_id: "one", number: "INC1" };
    if (verb !== "GET") states.push(JSON.parse(body).state ?? "open");
    response.writeHead(200).end(JSON.stringify({ result }));
  });
  const until = async (state: string) => {
    while (states.at(-1) !== state) await sleep(20);
  };
  for (const [name, numberVal] of Object.entries({ warn: 2, page: 5 })) {
    const clause = { greaterAndEquals: { field: "severity", value: { numberVal } } };
    await made("triggers", { name, type: { event: { query: { clause } } } });
  }
  const itsm = { baseUrl: receiver.url, basic: { username: "belfry", password: "secret" } };
  await made("destinations", { name: "d", type: { itsm } });
  for (const name of ["warn", "page"])
    await made("rules", { name, enabled: true, sendUpdates: true, triggerNames: [name], destinationNames: ["d"] });
  const report = async (severity: string, status = "STATUS_OPEN") => {
    const event = { name: "disk", timestamp: String(Date.now()), dimensions: { source: "web" }, severity };
    await ok("POST", "/v1/data-receiver/events", { events: [{ ...event, status }] });
  };
  const { sql } = server.database;
  /** Resolves when nothing waits but held ends, and at most so many others. */
  const settled = async (others = 0) => {
    const waiting = () => sql`
      select from due_deliveries where tenant_id = ${tenant.id} and (occasion <> 'clear' or due_ms < ${Date.now() + 60_000}::int8)`;
    do await sleep(50);
    while ((await waiting()).length > others);
  };
  const change = async (name: string, method: string, members?: object) => {
    const { rule } = (await ok("GET", `/v1/notification/rules/${name}`)) as { rule: object };
    await ok(method, `/v1/notification/rules/${name}`, members && { ...rule, ...members });
  };
  return { states, until, report, settled, change };
}

test.each([
  ["disabled", "PUT", { enabled: false }],
  ["left without the destination", "PUT", { destinationNames: [] }],
  ["deleted", "DELETE", undefined],
])(
  "a ticket is closed at once when the rule that still needed it is %s",
  { timeout: 20_000 },
  async (_what, method, members) => {
    const { states, until, report, settled, change } = await ticketPlace();
    await report("SEVERITY_CRITICAL");
    await until("open");
    await settled();
    await report("SEVERITY_WARNING");
    await settled();
    expect(states).not.toContain("6");
    await change("warn", method, members);
    await until("6");
  },
);

test("a ticket is closed though the rule that opened it matches again, where that ends within its delay", async () => {
  const { states, until, report, settled, change } = await ticketPlace();
  await change("warn", "PUT", { sendUpdates: false });
  await report("SEVERITY_CRITICAL");
  await settled();
  await change("page", "PUT", { delaySec: 600 });
  await report("SEVERITY_WARNING");
  await settled();
  expect(states).not.toContain("6");
  await report("SEVERITY_CRITICAL");
  await change("warn", "PUT", { enabled: false });
  // The notification that waits for its delay.
  await settled(1);
  await report("SEVERITY_CRITICAL", "STATUS_CLOSED");
  await until("6");
});
