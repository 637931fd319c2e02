import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";
import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { certificate } from "../../src/http/certificate.ts";
import { transport } from "../support/clients.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { running } from "../support/serving-processes.ts";
import { testTenant } from "../support/tenant.ts";
import { type TestMachine, testMachine } from "./machine.ts";

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

test("a process that dies is replaced, the others serve on, and a new certificate reaches all; the fifth death ends the server", {
  timeout: 200_000,
}, async () => {
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

test("serving processes end within a second of the one that owns the port", { timeout: 200_000 }, async () => {
  const machine = await testMachine(env);
  const processes = machine.serving();
  expect(processes).toHaveLength(3);
  await machine.server.kill();
  // The bound is what the documentation names.
  for (let waited = 0; waited < 1000 && processes.some(running); waited += 50) await sleep(50);
  expect(processes.filter(running)).toEqual([]);
});
