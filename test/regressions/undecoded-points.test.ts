import { createClient } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();

// Names that are not ASCII are decoded by the platform alone, which counts how often the points' host is.
const host = "wählamt-1";
const decode = TextDecoder.prototype.decode;
let decoded = 0;
TextDecoder.prototype.decode = function (...given) {
  const text = decode.apply(this, given);
  if (text === host) decoded += 1;
  return text;
};
afterAll(() => {
  TextDecoder.prototype.decode = decode;
});

const count = 20;

/** A tenant; `send` answers how many points of a request of each metric were decoded. */
async function sender() {
  const { headers } = await testTenant(server.database.sql);
  const receiver = createClient(DataReceiverService, transport(server.target, "grpc", headers));
  async function send(): Promise<number> {
    const before = decoded;
    const metrics = Array.from({ length: count }, (_, i) => ({
      metric: `metric ${i}`,
      timestamp: BigInt(Date.now()),
      value: i,
      dimensions: { host },
    }));
    expect(await receiver.putMetrics({ metrics })).toMatchObject({ succeeded: count, failed: 0 });
    return decoded - before;
  }
  return { send, call: v1(server.url, headers) };
}

/** Has a rule look at a metric. */
async function rule({ call }: Awaited<ReturnType<typeof sender>>, name: string, type: object) {
  const destination = { name, type: { webhook: { url: "https://example.com/" } } };
  for (const [path, body] of [
    ["triggers", { name, type }],
    ["destinations", destination],
    ["rules", { name, enabled: true, message: "m", triggerNames: [name], destinationNames: [name] }],
  ] as const) {
    expect(await call("POST", `/v1/notification/${path}`, body)).toMatchObject({ status: 200 });
  }
}

describe("a request of points whose series are known", () => {
  test("is stored without decoding any, where the tenant has no rule", async () => {
    const { send } = await sender();
    expect(await send()).toBeGreaterThanOrEqual(count);
    expect(await send()).toBe(0);
  });

  test.each([
    ["staleData", { durationSec: "60" }],
    ["metricThreshold", { max: 1e9 }],
  ])("decodes those alone that a rule of the source %s looks at", async (source, more) => {
    const one = await sender();
    await rule(one, "of no metric that comes", { [source]: { metricName: "another", ...more } });
    expect(await one.send()).toBeGreaterThanOrEqual(count);
    expect(await one.send()).toBe(0);
    await rule(one, "of one that comes", { [source]: { metricName: "metric 7", ...more } });
    // A server learns of rules within a second.
    await expect.poll(one.send).toBe(1);
  });
});
