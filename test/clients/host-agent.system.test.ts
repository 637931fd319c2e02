import { writeFileSync } from "node:fs";
import { createServer, type Http2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { startAgent } from "../../examples/host-agent/agent.ts";
import { openBuffer } from "../../examples/host-agent/buffer.ts";
import { exhausted } from "../../src/errors.ts";
import { transport } from "../support/clients.ts";
import { temporaryDir } from "../support/database.ts";

/** A receiver that refuses the first request for points in this way, and takes all others. */
async function receiver(refuse: () => ConnectError) {
  const taken: number[] = [];
  const triesMs: number[] = [];
  const put = (items: readonly unknown[]) => ({ succeeded: items.length });
  const adapter = connectNodeAdapter({
    routes: (router) =>
      router.service(DataReceiverService, {
        putModels: ({ models }) => put(models),
        putEvents: ({ events }) => put(events),
        putMetrics({ metrics }) {
          triesMs.push(performance.now());
          if (triesMs.length === 1) throw refuse();
          taken.push(...metrics.map(({ timestamp }) => Number(timestamp)));
          return put(metrics);
        },
      }),
  });
  const server: Http2Server = createServer(adapter);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, taken, triesMs, server };
}

/** An agent that reads every 20 ms until what the receiver has refused has been sent again. */
async function run({ url, taken, triesMs, server }: Awaited<ReturnType<typeof receiver>>) {
  const readMs: number[] = [];
  const said: string[] = [];
  const agent = startAgent({
    receiver: createClient(DataReceiverService, transport({ url }, "grpc", {})),
    async read() {
      const timeMs = Math.max(Date.now(), (readMs.at(-1) ?? 0) + 1);
      readMs.push(timeMs);
      const cpu = { count: 1, timeSec: {} };
      const none = { disks: [], interfaces: [], filesystems: [] };
      return { timeMs, uptimeSec: 1, cpu, load: [0, 0, 0], memory: { limit: 1, available: 1 }, ...none };
    },
    source: "web-1",
    intervalMs: 20,
    limits: { filesystem: 1, memory: 2, load: 100 },
    bufferFolder: temporaryDir(),
    bufferBytesMax: 1024 * 1024,
    pauseMsMax: 20,
    log: (line) => said.push(line),
  });
  await expect.poll(() => taken.length).toBeGreaterThan(0);
  expect(await agent.stop(10_000)).toBe(true);
  server.close();
  const [firstMs = 0, secondMs = 0] = triesMs;
  return { readMs, times: [...new Set(taken)], pauseMs: secondMs - firstMs, said: said.join("\n") };
}

test.each([
  ["RetryInfo", () => exhausted("too much to do", 0.4), 390],
  [
    "Retry-After alone, as of a proxy",
    () => new ConnectError("too much to do", Code.ResourceExhausted, { "retry-after": "1" }),
    990,
  ],
])("the host agent waits as long as %s asks it to, then sends all from its disk", async (_, refuse, ms) => {
  const { readMs, times, pauseMs, said } = await run(await receiver(refuse));
  expect(pauseMs).toBeGreaterThanOrEqual(ms); // timers may be some milliseconds early
  expect(times).toEqual(readMs);
  expect(said).not.toMatch(/lost|given up/);
});

test("a lock that was left empty on a full disk keeps no agent from its buffer", () => {
  const folder = temporaryDir();
  writeFileSync(join(folder, "agent.pid"), "");
  openBuffer(folder, 1024 * 1024, () => {}).close();
});
