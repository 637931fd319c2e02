import { writeFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { fileServer, memoryBytes } from "../../faults/file-server.ts";
import { openHttp2 } from "../../support/clients.ts";
import { turnMsMax } from "../../support/loop-turns.ts";
import { testTenant } from "../../support/tenant.ts";
import { type HostileWrite, hostileWrites, packedWrite } from "./hostile-writes.ts";

const MiB = 2 ** 20;
const { server, sql } = await fileServer({
  // As start.js sets them, and a heap that leaves the process within 1.5 GB.
  MALLOC_ARENA_MAX: "2",
  NODE_OPTIONS: "--max-semi-space-size=16 --max-old-space-size=1000",
});
const attacker = await testTenant(sql);
const connection = openHttp2(server);
afterAll(() => connection.close());
const times = 2;
/** How much more memory a request may take than its unpacked body, and a part of the heap that is not collected yet. */
const [bodyFactor, beside, uncollected] = [16, 8 * MiB, 64 * MiB];
const heldMax = 50 * MiB;
const residentMax = 1.5 * 1024 * MiB;

/** What is wrong with the answers to a request. */
async function wrongWith(one: HostileWrite): Promise<string[]> {
  const bytes = one.make();
  const { headers, body } = packedWrite(one, bytes);
  const send = { path: "/api/v1/write", headers: { ...attacker.headers, ...headers }, body: [body] };
  const wrong: string[] = [];
  const residentBytes = memoryBytes(server, "VmRSS");
  // The most that it has taken is counted from here on.
  writeFileSync(`/proc/${server.pid}/clear_refs`, "5");
  let ms = Number.POSITIVE_INFINITY;
  // What the requests before it have left for the collector counts in one of the tries at most.
  for (let tries = 0; tries < 3 && ms > turnMsMax; tries++) {
    await server.longestTurn();
    for (let i = 0; i < times; i++) {
      const answer = await connection.send(send);
      if (!one.statuses.includes(answer.status)) wrong.push(`${answer.status} ${answer.body.toString().slice(0, 300)}`);
    }
    ({ ms } = await server.longestTurn());
  }
  if (ms > turnMsMax) wrong.push(`a turn of ${ms} ms`);
  const mostBytes = memoryBytes(server, "VmHWM");
  if (mostBytes > residentMax || mostBytes - residentBytes > bodyFactor * bytes.length + beside + uncollected)
    wrong.push(`${Math.round((mostBytes - residentBytes) / MiB)} MiB for ${Math.round(bytes.length / MiB)}`);
  return wrong;
}

describe("a request that is small on the wire is answered within bounds of memory and turns of the loop", () => {
  let heldBytes = 0;
  test("a good one first, so that code is compiled", async () => {
    for (const one of hostileWrites(Date.now()).filter(({ statuses }) => statuses.includes(204))) await wrongWith(one);
    heldBytes = await server.heldBytes();
  });

  test.each(hostileWrites(Date.now()))("$name", async (one) => {
    expect(await wrongWith(one)).toEqual([]);
  });

  test("nothing of them is kept, and the process has lived through all of them", async () => {
    expect((await server.heldBytes()) - heldBytes).toBeLessThan(heldMax);
    expect(server.complaints).toEqual([]);
  });
});
