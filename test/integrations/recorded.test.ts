import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { rawHttp1 } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();

const startedAt = "2026-11-23T13:40:31.611Z";

/** A request as Debian's Prometheus 2.42 has sent it; the alerts in it have begun at another time, which was `startedAt`. */
function recorded(name: string, startMs: number) {
  const bytes = readFileSync(join(import.meta.dirname, "recorded", `${name}.http`), "utf8");
  const end = bytes.indexOf("\r\n\r\n");
  const [first = "", ...lines] = bytes.slice(0, end).split("\r\n");
  const [method = "", path = ""] = first.split(" ");
  const body = bytes.slice(end + 4).replaceAll(/2026-11-23T[0-9:.]+Z/g, (time) => {
    return new Date(startMs + Date.parse(time) - Date.parse(startedAt)).toISOString();
  });
  const headers = Object.fromEntries(lines.map((line) => line.split(": ", 2)) as [string, string][]);
  return { method, path, body, headers };
}

async function world() {
  const { headers } = await testTenant(server.database.sql);
  const json = v1(server.url, headers);
  return {
    async send({ method, path, body, headers: sent }: ReturnType<typeof recorded>) {
      const bytes = Buffer.from(body);
      const { Host: _, Authorization: scheme = "", ...rest } = sent;
      const key = scheme.replace("bf_recorded", headers["service-api-key"] ?? "");
      const own = { ...rest, Authorization: key, "Content-Length": String(bytes.length) };
      const answer = await rawHttp1(server.target, { method, path, headers: own, body: [bytes] });
      expect({ status: answer.status, body: String(answer.body) }).toEqual({ status: 200, body: "" });
    },
    async events() {
      const { body } = await json("POST", "/v1/events:search", { query: { pageInput: { limit: 1000 } } });
      return body.results as { name: string; occurrences: Record<string, unknown>[] }[];
    },
  };
}

test("what Prometheus 2.42 sends opens an occurrence of each alert, its repeats keep it open, and its end closes it", async () => {
  const { send, events } = await world();
  const startMs = Date.now() - 10_000;
  const firing = recorded("prometheus-2.42-firing", startMs);
  for (let i = 0; i < 3; i++) await send(firing);
  const open = await events();
  expect(open.map(({ occurrences }) => occurrences.map(({ summary }) => summary)).sort()).toEqual([
    ["/ is 98 % full"],
    ["/var is 97.3 % full"],
  ]);
  for (const { name, occurrences } of open) {
    expect(name).toBe("DiskFull");
    expect(occurrences).toMatchObject([
      {
        status: "STATUS_OPEN",
        severity: "SEVERITY_CRITICAL",
        body: "Über <80 % & more",
        instanceCount: "1",
        startTime: String(startMs),
        expiresAt: String(startMs + 20_000),
        dimensions: { job: "node", instance: "web-1:9100" },
      },
    ]);
  }
  const resolved = recorded("prometheus-2.42-resolved", startMs);
  for (let i = 0; i < 2; i++) await send(resolved);
  for (const { occurrences } of await events()) {
    expect(occurrences).toMatchObject([{ status: "STATUS_CLOSED", endTime: String(startMs + 9000) }]);
  }
});

test("256 alerts of that form in one request, as newer ones send, are an event each", async () => {
  const { send, events } = await world();
  const one = recorded("prometheus-2.42-firing", Date.now() - 10_000);
  const [first = ""] = one.body.slice(1).split(/,(?=\{"annotations")/);
  const alerts = Array.from({ length: 256 }, (_, i) => first.replace('"/var"', `"/var/${i}"`));
  const many = { ...one, body: `[${alerts.join()}]` };
  expect(JSON.parse(many.body)).toHaveLength(256);
  for (let i = 0; i < 2; i++) await send(many);
  const all = await events();
  expect(all).toHaveLength(256);
  expect(new Set(all.map(({ occurrences: [each] }) => each?.instanceCount))).toEqual(new Set(["1"]));
});
