import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test, vi } from "vitest";
import { temporaryDir } from "../support/database.ts";
import { httpReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { tool } from "./calls.ts";
import { installed } from "./programs.ts";

const server = await testServer({ BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" });
/** Another server on the same database. */
const other = await testServer({ DATABASE_URL: server.database.url, BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" });
const api = "/api/v2/alerts";
const hook = "/v1/integrations/alertmanager-webhook";

async function world() {
  const { id, headers } = await testTenant(server.database.sql);
  const [call, there] = [tool(server, headers), tool(other, headers)];
  const json = v1(server.url, headers);
  return {
    id,
    headers,
    send: async (alert: object) => expect((await call("POST", api, [alert])).status).toBe(200),
    sendThere: async (alert: object) => expect((await there("POST", api, [alert])).status).toBe(200),
    hook: async (alert: object) =>
      expect((await call("POST", hook, { version: "4", alerts: [alert] })).status).toBe(200),
    open: async () => (await call("GET", api)).body as object[],
    /** The occurrences of the one event that there is, the latest last. */
    async occurrences() {
      const { body } = await json("POST", "/v1/events:search", { query: {} });
      expect(body.results).toHaveLength(1);
      const number = ({ id }: { id: string }) => Number(id.split(":").at(-1));
      return body.results[0].occurrences.sort((a: { id: string }, b: { id: string }) => number(a) - number(b));
    },
    json,
  };
}

const at = (offsetMs: number) => new Date(Date.now() + offsetMs).toISOString();
const labels = { alertname: "DiskFull", job: "x" };
const firing = (more: object = {}) => ({ labels, endsAt: at(3_600_000), ...more });

describe.skipIf(!installed("amtool"))("Debian's amtool", async () => {
  const { headers, open, occurrences } = await world();
  const config = join(temporaryDir(), "http.yml");
  writeFileSync(config, JSON.stringify({ authorization: { credentials: headers["service-api-key"] } }));
  const amtool = (...args: string[]) =>
    promisify(execFile)("amtool", [`--alertmanager.url=${server.url}`, `--http.config.file=${config}`, ...args]);

  test("ends an alert that it has added for an hour, as often as it does so", async () => {
    for (let count = 1; count <= 2; count++) {
      await amtool("alert", "add", "DiskFull", "job=x", `--end=${at(3_600_000)}`);
      const { stdout } = await amtool("alert", "query", "job=x");
      expect(stdout).toContain("DiskFull");
      await amtool("alert", "add", "DiskFull", "job=x", `--end=${at(0)}`);
      expect(await open()).toEqual([]);
      expect(await occurrences()).toMatchObject(Array(count).fill({ status: "STATUS_CLOSED" }));
    }
  });

  test("shows alerts whose generatorURL is no address", async () => {
    await amtool("alert", "add", "Odd", "job=y", "--generator-url=http://:9090/graph?g0.expr=up");
    const { stdout } = await amtool("alert", "query", "job=y", "-o", "extended");
    expect(stdout).toContain("http://:9090/graph?g0.expr=up");
    await amtool("alert", "add", "Odd", "job=y", `--end=${at(0)}`);
  });
});

describe("the end of an alert closes what is open of it", () => {
  test.each([
    ["that has begun ahead of our clock", { startsAt: at(120_000) }, -1],
    ["without a start, from a clock that is slow", {}, -60_000],
    ["with a start, from a clock that is slow", { startsAt: at(-10_000) }, -60_000],
    ["that ends before all that is kept", {}, -400 * 86_400_000],
  ])("one %s", async (_name, start, endMs) => {
    const { send, open, occurrences } = await world();
    const before = Date.now();
    await send(firing(start));
    expect(await open()).toHaveLength(1);
    for (let times = 0; times < 2; times++) await send({ labels, endsAt: at(endMs) });
    expect(await open()).toEqual([]);
    const [occurrence, ...more] = await occurrences();
    expect(more).toEqual([]);
    expect(occurrence.status).toBe("STATUS_CLOSED");
    const { startTime, endTime } = occurrence;
    expect(Number(startTime)).toBeLessThanOrEqual(Date.now());
    expect(Number(endTime)).toBeGreaterThanOrEqual(Number(startTime));
    expect(Number(endTime)).toBeLessThanOrEqual(Math.max(before + 5000, Date.now()));
  });

  test("by a webhook, too; and it fires again afterwards", async () => {
    const { hook: send, open, occurrences } = await world();
    await send({ status: "firing", labels, startsAt: at(120_000) });
    await send({ status: "resolved", labels, startsAt: at(120_000), endsAt: at(121_000) });
    expect(await open()).toEqual([]);
    await send({ status: "firing", labels, startsAt: at(180_000) });
    expect(await open()).toHaveLength(1);
    expect(await occurrences()).toMatchObject([{ status: "STATUS_CLOSED" }, { status: "STATUS_OPEN" }]);
  });

  test("at the last report that it fires, whichever server took that, where the end's clock is slow", async () => {
    const { send, sendThere, occurrences } = await world();
    await send(firing({ startsAt: at(-60_000) }));
    const before = Date.now();
    await sendThere(firing());
    const after = Date.now();
    await send({ labels, endsAt: at(-30_000) });
    const [{ endTime, lastSeen, instanceCount }] = await occurrences();
    expect(Number(endTime)).toBeGreaterThanOrEqual(before);
    expect(Number(endTime)).toBeLessThanOrEqual(after);
    expect(Number(lastSeen)).toBeLessThan(before - 20_000);
    expect(instanceCount).toBe("2");
  });

  test("at its own time, where the alert has fired all the while since a start before that", async () => {
    const { send, occurrences } = await world();
    const startsAt = at(-60_000);
    const endsAt = at(-30_000);
    for (let times = 0; times < 3; times++) await send(firing({ startsAt }));
    await send({ labels, startsAt, endsAt });
    expect(await occurrences()).toMatchObject([{ endTime: String(Date.parse(endsAt)) }]);
  });

  test("but not by one that was sent before, as a pair repeats ends, what has begun since", async () => {
    const { send, open } = await world();
    const ended = { labels, startsAt: at(-60_000), endsAt: at(-30_000) };
    await send(firing({ startsAt: at(-60_000) }));
    await send(ended);
    await send(firing({ startsAt: at(-10_000) }));
    await send(ended);
    expect(await open()).toHaveLength(1);
  });

  test("within one request", async () => {
    const { headers, open, occurrences } = await world();
    const alerts = [firing(), firing(), { labels, endsAt: at(-60_000) }];
    expect((await tool(server, headers)("POST", api, alerts)).status).toBe(200);
    expect(await open()).toEqual([]);
    expect(await occurrences()).toMatchObject([{ status: "STATUS_CLOSED", instanceCount: "2" }]);
  });
});

describe("an alert that has ended for one sender and fires for another", () => {
  const startsAt = at(-600_000);
  const ended = { labels, startsAt: at(-620_000), endsAt: at(-30_000) };
  const both = [{ status: "STATUS_CLOSED", closedBy: "CLOSED_BY_ALERT" }, { status: "STATUS_OPEN" }];

  test("opens the next occurrence when it is received, once, and the same end sent again closes nothing", async () => {
    const { send, sendThere, open, occurrences } = await world();
    await send(firing({ startsAt }));
    await sendThere(ended);
    expect(await open()).toEqual([]);
    const before = Date.now();
    await send(firing({ startsAt }));
    const after = Date.now();
    for (let times = 0; times < 2; times++) {
      await sendThere(ended);
      await send(firing({ startsAt }));
    }
    const all = await occurrences();
    expect(all).toMatchObject(both);
    expect(Number(all[1].startTime)).toBeGreaterThanOrEqual(before);
    expect(Number(all[1].startTime)).toBeLessThanOrEqual(after);
    expect(all[1].instanceCount).toBe("1");
    await send({ labels, startsAt, endsAt: at(0) });
    await sendThere(ended);
    expect(await occurrences()).toMatchObject([both[0], both[0]]);
  });

  test("through the webhook, as after a partition of Alertmanager", async () => {
    const { hook: send, occurrences } = await world();
    await send({ status: "firing", labels, startsAt });
    await send({ status: "resolved", ...ended });
    await send({ status: "firing", labels, startsAt });
    expect(await occurrences()).toMatchObject(both);
  });

  test("within one request, however often", async () => {
    const { headers, occurrences } = await world();
    const ends = [1, 2, 3].map((nth) => ({ labels, endsAt: at(-60_000 + nth) }));
    const alerts = ends.flatMap((end) => [firing({ startsAt }), end]);
    expect((await tool(server, headers)("POST", api, [...alerts, firing({ startsAt })])).status).toBe(200);
    expect(await occurrences()).toMatchObject([both[0], both[0], both[0], both[1]]);
  });

  test("stays closed when a person has closed it, also when an end is reported after that", async () => {
    const { send, json, open, occurrences } = await world();
    await send(firing({ startsAt }));
    const [{ id: occurrenceId, eventId }] = await occurrences();
    const statuses = [{ eventId, occurrenceId, statusWrapper: { status: "STATUS_CLOSED" } }];
    expect((await json("POST", "/v1/event-management/status", { statuses })).status).toBe(200);
    await send(firing({ startsAt }));
    await send(ended);
    await send(firing({ startsAt }));
    expect(await open()).toEqual([]);
    expect(await occurrences()).toMatchObject([{ closedBy: "CLOSED_BY_PERSON" }]);
  });

  test("is not believed beyond its own end", async () => {
    const { send, open } = await world();
    await send(firing({ startsAt }));
    await send(ended);
    await send({ labels, startsAt, endsAt: at(-20_000) });
    expect(await open()).toEqual([]);
  });

  test("what did not come as an alert says nothing of it: sent again, it changes nothing", async () => {
    const { json, send, occurrences } = await world();
    await send(firing({ startsAt }));
    await send(ended);
    const [{ startTime, severity }] = await occurrences();
    const { body } = await json("POST", "/v1/events:search", { query: {} });
    const { name, dedupKey } = body.results[0];
    const native = { name, dedupKey, dimensions: { job: "x" }, timestamp: startTime, severity, status: "STATUS_OPEN" };
    const answer = await json("POST", "/v1/data-receiver/events", { events: [native] });
    expect(answer.status).toBe(200);
    expect(await occurrences()).toMatchObject([both[0]]);
  });
});

describe("an annotation that changes while its alert fires", () => {
  const said = (text: string) =>
    firing({ startsAt: at(-60_000), annotations: { summary: text, description: text, text } });

  test("is shown from then on, is no instance, and is left out when the alert has it no more", async () => {
    const { send, sendThere, open, occurrences } = await world();
    await send(said("97 %"));
    const [before] = await occurrences();
    await sendThere(said("98 %"));
    expect(await open()).toMatchObject([{ annotations: { summary: "98 %", description: "98 %", text: "98 %" } }]);
    const [after] = await occurrences();
    expect(after).toMatchObject({ summary: "98 %", body: "98 %", metadataFields: { "annotation.text": "98 %" } });
    const { instanceCount, lastSeen, startTime, status } = before;
    expect(after).toMatchObject({ instanceCount, lastSeen, startTime, status });
    await send({ ...said(""), annotations: { text: "99 %" } });
    const [last] = await occurrences();
    expect(last).toMatchObject({ summary: "DiskFull", body: "", metadataFields: { "annotation.text": "99 %" } });
    expect(last.metadataFields).not.toHaveProperty(["annotation.summary"]);
  });

  test("is no change of where it is sent from, in which a pair differs", async () => {
    const { send, open } = await world();
    for (const generatorURL of ["http://a/graph", "http://b/graph"]) await send({ ...said("97 %"), generatorURL });
    expect(await open()).toMatchObject([{ generatorURL: "http://a/graph" }]);
    await send({ ...said("98 %"), generatorURL: "http://b/graph" });
    expect(await open()).toMatchObject([{ generatorURL: "http://b/graph", annotations: { summary: "98 %" } }]);
  });

  test("is that of the last alert of a request", async () => {
    const { headers, occurrences } = await world();
    expect((await tool(server, headers)("POST", api, [said("1"), said("2"), said("3")])).status).toBe(200);
    expect(await occurrences()).toMatchObject([{ summary: "3", body: "3", instanceCount: "1" }]);
  });

  test("reaches neither watches nor rules; and the end of what was sent is sent all the same", async () => {
    const { id, send, json } = await world();
    const receiver = await httpReceiver();
    const equals = { field: "summary", value: { stringVal: "1" } };
    const trigger = { name: "one", type: { event: { query: { clause: { equals } } } } };
    const destination = { name: "hook", type: { webhook: { url: receiver.url } } };
    const rule = { triggerNames: ["one"], destinationNames: ["hook"], enabled: true, sendUpdates: true, message: "x" };
    expect((await json("POST", "/v1/notification/triggers", trigger)).status).toBe(200);
    expect((await json("POST", "/v1/notification/destinations", destination)).status).toBe(200);
    expect((await json("POST", "/v1/notification/rules", { name: "rule", ...rule })).status).toBe(200);
    const clears = () => receiver.received.map(({ body }) => JSON.parse(String(body)).clear);
    const sent = (count: number) => vi.waitFor(() => expect(clears()).toHaveLength(count), { timeout: 20_000 });
    const changes = async () => (await server.database.sql`select position from feed where tenant_id = ${id}`).count;
    await send(said("1"));
    await sent(1);
    expect(await changes()).toBe(1);
    await send(said("2"));
    expect(await changes()).toBe(1);
    await send({ ...said("2"), endsAt: at(0) });
    await sent(2);
    expect([clears(), await changes()]).toEqual([[false, true], 2]);
  }, 60_000);
});
