import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { extract, nightly } from "../support/cases.ts";
import { codeOf, openHttp2 } from "../support/clients.ts";
import { turnMsMax } from "../support/loop-turns.ts";
import { testTenant } from "../support/tenant.ts";
import { fileServer, memoryBytes } from "./file-server.ts";
import { differingExports, exportRequests, hostileExports } from "./hostile-otlp.ts";

const MiB = 1024 * 1024;
/** How often each is sent. */
const rounds = 2;
const growthMax = 50 * MiB;
const { server, sql } = await fileServer({ NODE_OPTIONS: "--max-old-space-size=256" });
const attacker = (await testTenant(sql)).headers["service-api-key"] as string;

/** Memory that the process has taken at most since `forgetPeak`. */
const peakBytes = () => memoryBytes(server, "VmHWM");
const forgetPeak = () => writeFileSync(`/proc/${server.pid}/clear_refs`, "5");
/** What a request may take, and what waits for a collection besides. */
const takenMax = (bytes: number) => 16 * bytes + 8 * MiB + garbageBytes;
const garbageBytes = 64 * MiB;

describe.each([
  ["plain", false, 120_000],
  ["compressed", true, 300_000],
])("exports that are cheap to send, %s", (_, packed, size) => {
  test("each is refused or answered within the memory of its body, and in no long turn", async () => {
    const wrong: string[] = [];
    const one = openHttp2(server);
    for (const [name, make] of extract(Object.entries(hostileExports(size)), 6)) {
      for (const { name: way, bytes, request } of exportRequests(make(), attacker, packed)) {
        const before = await server.heldBytes();
        await server.longestTurn();
        forgetPeak();
        const rss = peakBytes();
        let [status, code, said] = [0, 0 as number | string, ""];
        for (let round = 0; round < rounds; round += 1) {
          const answer = await one.send(request);
          ({ status } = answer);
          said = String(answer.body).slice(0, 150);
          code = codeOf(answer);
        }
        const taken = peakBytes() - rss;
        const turn = (await server.longestTurn()).ms;
        const grown = (await server.heldBytes()) - before;
        if (![200, 400, 413].includes(status)) wrong.push(`${name} over ${way}: ${status} ${said}`);
        if (![0, 3, 8, "HTTP 400", "HTTP 413"].includes(code as number)) wrong.push(`${name} over ${way}: ${code}`);
        if (turn > turnMsMax) wrong.push(`${name} over ${way} held the event loop for ${Math.round(turn)} ms`);
        if (taken > takenMax(bytes)) wrong.push(`${name} over ${way} took ${Math.round(taken / MiB)} MiB`);
        if (grown > growthMax) wrong.push(`${name} over ${way} left ${Math.round(grown / MiB)} MiB`);
      }
    }
    one.close();
    expect(wrong).toEqual([]);
  });
});

test("exports that all differ, a few KB each as they are sent, leave nothing behind", async () => {
  const one = openHttp2(server);
  const before = await server.heldBytes();
  const refused: string[] = [];
  for (let i = 0; i < (nightly ? 100 : 10); i += 1) {
    for (const each of differingExports(1_000_000, i)) {
      for (const { request } of exportRequests(each, attacker, true)) {
        const { status, body } = await one.send(request);
        if (status !== 200) refused.push(`${status} ${String(body)}`);
      }
    }
  }
  one.close();
  expect(refused).toEqual([]);
  expect((await server.heldBytes()) - before).toBeLessThan(growthMax);
});

test("the process has lived through all of it", () => {
  expect(server.complaints).toEqual([]);
});
