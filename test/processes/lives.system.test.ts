import { copyFileSync } from "node:fs";
import { join } from "node:path";
import tls from "node:tls";
import { createClient } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { certificate } from "../../src/http/certificate.ts";
import { nightly } from "../support/cases.ts";
import { transport } from "../support/clients.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { running } from "../support/serving-processes.ts";
import { testTenant } from "../support/tenant.ts";
import { type TestMachine, testMachine } from "./machine.ts";
import { watchOver } from "./watches.ts";

const database = await testDatabase();
const { headers } = await testTenant(database.sql);
const env = { DATABASE_URL: database.url };

async function certificateShown({ target }: TestMachine): Promise<string> {
  const { hostname, port } = new URL(target.url);
  const socket = tls.connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
  await new Promise((resolve) => socket.once("secureConnect", resolve));
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

test("a process that dies is replaced, the others serve on, and a new certificate reaches all; the fifth death ends nothing", async () => {
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
    await expect.poll(() => machine.said().match(/a serving process has died/g)?.length).toBe(death);
    if (death > 2) continue;
    // Clients of the dead process connect again, to another one.
    for (const call of calls) await call.searchEvents({ query: {} }).catch(() => call.searchEvents({ query: {} }));
    await expect.poll(() => machine.metrics().then((all) => all.get("belfry_processes"))).toBe(3);
  }
  const deaths = machine
    .said()
    .split("\n")
    .filter((line) => line.includes("a serving process has died"))
    .map((line) => JSON.parse(line));
  expect(deaths.map(({ deaths, waitMs }) => [deaths, waitMs])).toEqual([
    [1, 0],
    [2, 1000],
    [3, 2000],
    [4, 4000],
    [5, 60_000],
  ]);
  const served = (call: (typeof calls)[number]) =>
    call.searchEvents({ query: {} }).then(
      () => true,
      () => false,
    );
  for (const call of calls) await expect.poll(() => served(call)).toBe(true);
  // The last one comes back after a minute.
  const processes = nightly ? 3 : 2;
  await expect.poll(() => machine.metrics().then((all) => all.get("belfry_processes"))).toBe(processes);
  await machine.server.stop();
});

test("the log names what the process that died had in work", async () => {
  const machine = await testMachine(env);
  const watch = await watchOver(transport(machine.target, "grpc", headers));
  onTestFinished(() => watch.end());
  for (const pid of machine.serving()) process.kill(pid, "SIGKILL");
  await expect.poll(() => machine.said().match(/a serving process has died/g)?.length).toBe(3);
  const inWork = machine
    .said()
    .split("\n")
    .filter((line) => line.includes("a serving process has died"))
    .flatMap((line) => JSON.parse(line).inWork);
  expect(inWork).toHaveLength(1);
  expect(inWork[0]).toMatch(/^belfry\.events\.v1\.EventQueryService\/WatchEvents by key \w+ of tenant \S+, for \S+ s$/);
  await machine.server.stop();
});

test("serving processes end with the one that owns the port", async () => {
  const machine = await testMachine(env);
  const processes = machine.serving();
  expect(processes).toHaveLength(3);
  await machine.server.kill();
  await expect.poll(() => processes.filter(running)).toEqual([]);
});
