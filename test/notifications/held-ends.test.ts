import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { httpReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const receiver = await httpReceiver();

test.each([
  ["disabled", "PUT", { enabled: false }],
  ["left without the destination", "PUT", { destinationNames: [] }],
  ["deleted", "DELETE", undefined],
])(
  "a ticket is closed at once when the rule that still needed it is %s",
  async (_what, method, change) => {
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
    for (const name of ["warn", "page"]) {
      const rule = { name, enabled: true, sendUpdates: true, triggerNames: [name], destinationNames: ["d"] };
      await made("rules", rule);
    }
    const report = async (severity: string) => {
      const event = { name: "disk", timestamp: String(Date.now()), dimensions: { source: "web" }, severity };
      await ok("POST", "/v1/data-receiver/events", { events: [{ ...event, status: "STATUS_OPEN" }] });
    };
    const waiting = () => server.database.sql`
    select from due_deliveries where tenant_id = ${tenant.id} and (occasion <> 'clear' or due_ms < ${Date.now() + 60_000}::int8)`;
    await report("SEVERITY_CRITICAL");
    await until("open");
    while ((await waiting()).length > 0) await sleep(20);
    await report("SEVERITY_WARNING");
    do await sleep(50);
    while ((await waiting()).length > 0);
    expect(states).not.toContain("6");
    const { rule } = (await ok("GET", "/v1/notification/rules/warn")) as { rule: object };
    await ok(method, "/v1/notification/rules/warn", change && { ...rule, ...change });
    await until("6");
  },
  20_000,
);
