import { createClient } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { httpVersions, openHttp2, protocols, raw, transport } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
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

test("three processes serve every protocol on one port, share out 64 connections, and report as one", {
  timeout: 200_000,
}, async () => {
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
