import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { heldMs, turnMsMax } from "../support/loop-turns.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { tool } from "./calls.ts";

const server = await testServer({ BELFRY_INGEST_WAIT: "1m" });

/** A tenant of its own: calls as Alertmanager's clients do. */
async function world() {
  const { headers } = await testTenant(server.database.sql);
  const call = tool(server, headers);
  return {
    call,
    list: async () => (await call("GET", "/api/v2/alerts")).body as { labels: Record<string, string> }[],
  };
}

const api = "/api/v2/alerts";
const hook = "/v1/integrations/alertmanager-webhook";
const gzip = { "content-encoding": "gzip" };
const pairs = (count: number) => Array.from({ length: count }, (_, i) => `"l${i.toString(36)}":"x"`).join(",");
const emptyAlerts = `[${"{},".repeat(5_000_000)}{}]`;
const manyAlerts = Array.from({ length: 200 }, (_, i) => `{"labels":{"n":"${i}",${pairs(1999)}}}`).join(",");
const deep = "[".repeat(15_000_000);

const hostile: [name: string, path: string, body: string | Buffer, status: number, headers?: Record<string, string>][] =
  [
    ["1.4 million labels in one alert", api, `[{"labels":{${pairs(300_000)}}}]`, 400],
    ["the same in a webhook", hook, `{"alerts":[{"labels":{${pairs(300_000)}}}]}`, 400],
    ["a label of 15 MB", api, `[{"labels":{"a":"${"x".repeat(15_000_000)}"}}]`, 400],
    ["a webhook of empty alerts", hook, gzipSync(`{"alerts":${emptyAlerts}}`), 413, gzip],
    ["a list of empty alerts", api, gzipSync(emptyAlerts), 413, gzip],
    ["lists in lists", api, gzipSync(deep), 400, gzip],
    ["lists in lists of a webhook", hook, gzipSync(`{"alerts":${deep}`), 400, gzip],
    ["lists in what is not read", hook, gzipSync(`{"x":[${"[],".repeat(5_000_000)}[]],"alerts":[]}`), 200, gzip],
    ["lists in what is not read of an alert", api, `[{"labels":{"a":"b"},"x":[${"[],".repeat(5_000_000)}[]]}]`, 400],
    ["members that are not read", hook, `{${`"x":1,`.repeat(2_500_000)}"alerts":[]}`, 200],
    ["members of an alert that are not read", api, `[{${`"x":1,`.repeat(2_500_000)}"labels":{"a":"b"}}]`, 400],
    ["objects as labels", api, `[{"labels":{"a":[${"{},".repeat(300_000)}{}]}}]`, 400],
  ];

describe("hostile requests", () => {
  test.each(hostile)("%s: in slices, another's call beside them", async (_name, path, body, status, headers = {}) => {
    const { call } = await world();
    const other = await world();
    const { turn } = await heldMs(async () => {
      const answer = call("POST", path, body, headers);
      expect((await other.call("GET", "/api/v2/alerts")).status).toBe(200);
      expect((await answer).status).toBe(status);
    });
    expect(turn).toBeLessThan(turnMsMax);
  });

  test("alerts with as many labels as they may have are stored in slices", async () => {
    const { call, list } = await world();
    const { turn } = await heldMs(async () => expect((await call("POST", api, `[${manyAlerts}]`)).status).toBe(200));
    expect(turn).toBeLessThan(turnMsMax);
    expect(await list()).toHaveLength(200);
  });
});

describe("an alert beyond the bounds is refused alone, by its place", () => {
  const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`l${i}`, "x"]));
  const good = { labels: { alertname: "Good" } };
  const many = { labels: labels(1000), annotations: labels(1001) };
  const most = { labels: labels(1000), annotations: labels(1000) };
  const large = { labels: { alertname: "Large" }, annotations: { description: "é".repeat(524_288) } };
  const tooMany = "an alert may have at most 2000 labels and annotations";
  const tooLarge = "an alert may be at most 1048576 bytes of JSON";

  test("of a list", async () => {
    const { call, list } = await world();
    const answer = await call("POST", api, [good, many, large, most]);
    expect([answer.status, answer.body]).toEqual([400, `alerts.1: ${tooMany}; alerts.2: ${tooLarge}`]);
    expect(await list()).toHaveLength(2);
  });

  test("of a webhook", async () => {
    const { call, list } = await world();
    const answer = await call("POST", hook, { version: "4", alerts: [many, large, good] });
    expect([answer.status, answer.body.message]).toEqual([400, `alerts[0]: ${tooMany}; alerts[1]: ${tooLarge}`]);
    expect(await list()).toHaveLength(1);
  });
});
