import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { rawHttp1 } from "../support/clients.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { httpReceiver } from "../support/receivers.ts";
import { masterKeys } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { installed, type RunningPrometheus, startPrometheus } from "./programs.ts";

const execute = promisify(execFile);

/** What is read, as soon as it is as expected. */
async function settled<T>(read: () => Promise<T>, isThere: (value: T) => boolean, what: string): Promise<T> {
  for (let i = 0; i < 300; i++) {
    const value = await read();
    if (isThere(value)) return value;
    await sleep(100);
  }
  throw new Error(`${what} did not come`);
}

describe.skipIf(!installed("prometheus", "amtool"))("Debian's Prometheus and amtool, over TLS with a key", async () => {
  const database = await testDatabase();
  const receiver = await httpReceiver();
  const dataDir = temporaryDir();
  const tenant = await testTenant(database.sql);
  const key = tenant.headers["service-api-key"] as string;
  const start = (port: number) =>
    startServer(
      readConfig({
        DATABASE_URL: database.url,
        BELFRY_DATA_DIR: dataDir,
        BELFRY_PORT: String(port),
        BELFRY_MASTER_KEYS: masterKeys,
        BELFRY_SHUTDOWN_TIMEOUT: "500ms",
        BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8",
      }),
      openLog("silent"),
    );
  let server = await start(0);
  const { url } = server;
  const ca = server.caFile as string;
  const running: RunningPrometheus[] = [];
  afterAll(async () => {
    for (const each of running) each.kill();
    await server.stop();
  });

  async function json(method: string, path: string, body?: unknown) {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: [Buffer.from(JSON.stringify(body))] };
    const answer = await rawHttp1({ url, ca }, { method, path, headers, ...sent });
    expect(answer.status, String(answer.body)).toBe(200);
    return JSON.parse(String(answer.body));
  }
  const occurrences = async () => {
    const { results } = await json("POST", "/v1/events:search", { query: {} });
    // biome-ignore lint/suspicious/noExplicitAny: JSON
    return results.flatMap((event: any) => event.occurrences);
  };
  const notified = () => receiver.received.map(({ body }) => JSON.parse(String(body))).map(({ clear }) => clear);

  test("fires, repeats as a pair, resolves and notifies once, through a restart; dies and expires", async () => {
    await json("POST", "/v1/notification/triggers", {
      name: "all",
      type: {
        event: { query: { clause: { equals: { field: "status", value: { stringVal: "STATUS_OPEN" } } } } },
      },
    });
    await json("POST", "/v1/notification/destinations", { name: "hook", type: { webhook: { url: receiver.url } } });
    const rule = {
      name: "tell",
      enabled: true,
      triggerNames: ["all"],
      destinationNames: ["hook"],
      message: "m",
      sendUpdates: true,
    };
    await json("POST", "/v1/notification/rules", rule);
    running.push(
      ...(await Promise.all([startPrometheus({ url, ca, key }, "a"), startPrometheus({ url, ca, key }, "b")])),
    );
    const [first, second] = running as [RunningPrometheus, RunningPrometheus];
    await Promise.all(running.map((each) => each.fire(true)));
    const [opened] = await settled(occurrences, (found) => found.length > 0, "the alert");
    expect(opened).toMatchObject({ status: "STATUS_OPEN", severity: "SEVERITY_CRITICAL", summary: "97 % is used" });

    // Repeats of both move its expiry on, and do nothing else; so does a server that was started again.
    const { port } = new URL(url);
    await server.stop();
    server = await start(Number(port));
    await settled(occurrences, ([at]) => Number(at.expiresAt) > Number(opened.expiresAt), "a repeat");
    expect(await occurrences()).toMatchObject([{ id: opened.id, instanceCount: "1", lastSeen: opened.lastSeen }]);

    // amtool reads it.
    const config = join(dataDir, "amtool-http.yml");
    writeFileSync(config, JSON.stringify({ authorization: { credentials: key }, tls_config: { ca_file: ca } }));
    const amtool = async (...args: string[]) =>
      (await execute("amtool", [`--alertmanager.url=${url}`, `--http.config.file=${config}`, ...args])).stdout;
    expect(
      JSON.parse(await amtool("-o", "json", "alert", "query", "alertname=DiskFull", 'severity=~"crit.*"')),
    ).toMatchObject([{ labels: { alertname: "DiskFull", instance: "web-1:9100" }, status: { state: "active" } }]);
    expect(await amtool("alert", "query", "alertname=Other")).not.toContain("web-1");
    expect(JSON.parse(await amtool("-o", "json", "silence", "query"))).toEqual([]);

    await Promise.all(running.map((each) => each.fire(false)));
    await settled(occurrences, ([at]) => at.status === "STATUS_CLOSED", "the end");
    expect(await occurrences()).toHaveLength(1);
    await settled(
      async () => notified(),
      (sent) => sent.length >= 2,
      "the notification and its clear",
    );
    expect(notified()).toEqual([false, true]);

    // Both die: nothing ends the alert but its expiry.
    await Promise.all(running.map((each) => each.fire(true)));
    await settled(occurrences, (found) => found.length === 2, "the alert again");
    first.kill();
    second.kill();
    await settled(
      occurrences,
      (found) => found.every(({ status }: { status: string }) => status === "STATUS_CLOSED"),
      "the expiry",
    );
    await settled(
      async () => notified(),
      (sent) => sent.length >= 4,
      "its clear",
    );
    expect(notified()).toEqual([false, true, false, true]);
    // Of the time between the two servers it may say that it met none.
    const away = /connection refused|connection reset|EOF/;
    expect(
      first
        .output()
        .split("\n")
        .filter((line) => line !== "" && !away.test(line)),
    ).toEqual([]);
  });
});
