import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";
import { createClient } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { certificate } from "../../src/http/certificate.ts";
import { httpVersions, openHttp2, protocols, raw, transport } from "../support/clients.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { running, type TestMachine, testMachine } from "./machine.ts";

const database = await testDatabase();
const { headers } = await testTenant(database.sql);
const env = { DATABASE_URL: database.url };

/** The connections of each process, as its metrics count them. */
async function connections({ metrics }: TestMachine): Promise<number[]> {
  const found = await metrics();
  return [1, 2, 3].map((number) => found.get(`belfry_connections{process="${number}"}`) ?? Number.NaN);
}

async function certificateShown({ target }: TestMachine): Promise<string> {
  const { hostname, port } = new URL(target.url);
  const socket = tls.connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
  await new Promise((resolve) => socket.once("secureConnect", resolve));
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

test("three processes serve every protocol on one port, share out 64 connections, and report as one", async () => {
  const machine = await testMachine(env);
  const { target, metrics, said } = machine;
  expect(said()).toContain("3 processes serve (BELFRY_PROCESSES).");

  const sent: string[] = [];
  for (const protocol of protocols) {
    for (const version of protocol === "grpc" ? (["2"] as const) : httpVersions) {
      const name = `${protocol} ${version}`;
      const event = { name, dimensions: { source: "web-1" }, timestamp: BigInt(Date.now()) };
      const receiver = createClient(DataReceiverService, transport(target, protocol, headers, version));
      const { succeeded } = await receiver.putEvents({ events: [event] });
      expect(succeeded, name).toBe(1);
      sent.push(name);
    }
  }
  const path = "/v1/events:search";
  for (const version of httpVersions) {
    const body = [Buffer.from(JSON.stringify({ query: {} }))];
    const answer = await raw(target, version, {
      ...{ method: "POST", path, body },
      headers: { ...headers, "content-type": "application/json" },
    });
    expect(answer.status).toBe(200);
    for (const name of sent) expect(answer.body.toString()).toContain(`"${name}"`);
  }

  const open = Array.from({ length: 64 }, () => openHttp2(target));
  onTestFinished(() => open.forEach((connection) => void connection.close()));
  const ready = await Promise.all(open.map((connection) => connection.send({ method: "GET", path: "/readyz" })));
  expect(new Set(ready.map(({ status }) => status))).toEqual(new Set([200]));
  await expect
    .poll(async () => (await connections(machine)).reduce((sum, each) => sum + each))
    .toBeGreaterThanOrEqual(64);
  const counts = await connections(machine);
  expect(Math.max(...counts)).toBeLessThanOrEqual(2 * Math.min(...counts));

  const found = await metrics();
  expect(found.get("belfry_processes")).toBe(3);
  expect(found.get("belfry_process_deaths_total")).toBe(0);
  expect([...found.keys()].filter((name) => name.startsWith("process_resident_memory_bytes")).sort()).toEqual(
    ["1", "2", "3", "owner"].map((process) => `process_resident_memory_bytes{process="${process}"}`),
  );
  const lines = said()
    .split("\n")
    .filter((line) => line.startsWith("{"));
  const writers = new Set(lines.map((line) => JSON.parse(line).process));
  expect(writers).toEqual(new Set([1, 2, 3, "owner"]));

  const processes = machine.serving();
  expect(processes).toHaveLength(3);
  await machine.server.stop();
  expect(machine.server.complaints).toEqual([]);
  expect(processes.filter(running)).toEqual([]);
});

test("a process that dies is replaced, the others serve on, and a new certificate reaches all; the fifth death ends the server", async () => {
  const tlsDir = temporaryDir();
  const config = { tlsCert: undefined, tlsKey: undefined, host: "127.0.0.1" };
  const [first, second] = await Promise.all(
    ["first", "second"].map((name) => certificate({ ...config, dataDir: join(tlsDir, name) })),
  );
  const [cert, key] = [join(tlsDir, "cert.pem"), join(tlsDir, "key.pem")];
  const use = ({ files }: { files: { cert: string; key: string } }) => {
    copyFileSync(files.key, key);
    copyFileSync(files.cert, cert);
  };
  if (first === undefined || second === undefined) throw new Error("no certificates");
  use(first);
  const machine = await testMachine({ ...env, BELFRY_TLS_CERT: cert, BELFRY_TLS_KEY: key });
  const before = await certificateShown(machine);
  use(second);
  const shown = new Set<string>();
  for (let i = 0; i < 6; i += 1) shown.add(await certificateShown(machine));
  expect(shown.size).toBe(1);
  expect(shown).not.toContain(before);

  const target = { url: machine.target.url, ca: second.caFile };
  const calls = Array.from({ length: 3 }, () => createClient(EventQueryService, transport(target, "grpc", headers)));
  for (const call of calls) await call.searchEvents({ query: {} });
  for (let death = 1; death <= 5; death += 1) {
    const [victim] = machine.serving();
    process.kill(victim as number, "SIGKILL");
    await expect
      .poll(() => machine.said().match(/a serving process has died/g)?.length, { timeout: 30_000 })
      .toBe(death);
    if (death > 2) continue;
    // Clients of the dead process connect again, to another one.
    for (const call of calls) await call.searchEvents({ query: {} }).catch(() => call.searchEvents({ query: {} }));
    await expect.poll(() => machine.metrics().then((all) => all.get("belfry_processes")), { timeout: 30_000 }).toBe(3);
  }
  await machine.server.ended();
  expect(machine.said()).toContain(
    "belfry: 5 serving processes have died within ten minutes, the last one by SIGKILL: the server ends",
  );
});

test("serving processes end within a second of the one that owns the port", async () => {
  const machine = await testMachine(env);
  const processes = machine.serving();
  expect(processes).toHaveLength(3);
  await machine.server.kill();
  // The bound is what the documentation names.
  for (let waited = 0; waited < 1000 && processes.some(running); waited += 50) await sleep(50);
  expect(processes.filter(running)).toEqual([]);
  expect(readFileSync(join(machine.dataDir, "ca.pem"), "utf8")).toContain("CERTIFICATE");
});
