import type { DescMethod } from "@bufbuild/protobuf";
import { expect, inject, test } from "vitest";
import { allMethods, type Call, callName, callRpc, newWorld, readCalls, type World } from "../support/calls.ts";
import { onCitus } from "../support/citus.ts";
import { testServer } from "../support/server.ts";
import { firstProcessIn, pidFileOf, startNodes } from "./citus-cluster.ts";
import { killProcesses } from "./postgres-process.ts";
import { tenantsAt } from "./sending-tenants.ts";

/** Calls that run at once. */
const together = 8;

test.runIf(onCitus)("every call of a tenant whose worker is there succeeds while another worker is away", async () => {
  await using stack = new AsyncDisposableStack();
  const server = await testServer({ BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" });
  const calls = await readCalls();
  const called = allMethods.flatMap((method): [DescMethod, Call][] => {
    const call = calls[callName(method)];
    return call === undefined ? [] : [[method, call]];
  });
  expect(called.length).toBeGreaterThan(90);
  const { nodes, start } = inject("database") as { nodes: string[]; start: string[] };
  const lost = nodes.at(-1) as string;

  // A tenant for each call. By hash each lies on one of two workers.
  const worlds: World[] = [];
  while (worlds.length < called.length) {
    const made = await Promise.all(Array.from({ length: together }, () => newWorld(server)));
    const there = await tenantsAt(server.database.sql, Number(new URL(lost).port));
    worlds.push(...made.filter(({ tenant }) => !there.has(tenant.id)));
  }

  await killProcesses(firstProcessIn(await pidFileOf(lost)));
  stack.defer(() => startNodes(start));
  const failed: string[] = [];
  const waiting = called.entries();
  async function callInTurn() {
    for (const [i, [method, call]] of waiting) {
      const world = worlds[i] as World;
      try {
        const request = await call.request(world);
        const headers = (await call.headers?.(world)) ?? world.tenant.headers;
        await callRpc(server.target, headers, method, request, AbortSignal.timeout(20_000));
      } catch (error) {
        failed.push(`${callName(method)}: ${(error as Error).message}`);
      }
    }
  }
  await Promise.all(Array.from({ length: together }, callInTurn));
  expect(failed).toEqual([]);
});
