import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  ExportLogsServiceRequestSchema,
  ExportLogsServiceResponseSchema,
} from "#gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import { heldMs, turnMsMax } from "../../support/loop-turns.ts";
import { testServer } from "../../support/server.ts";
import { testTenant } from "../../support/tenant.ts";
import { tool } from "../calls.ts";

const server = await testServer();
const { headers } = await testTenant(server.database.sql);
const call = tool(server, headers);

const count = 50_000;
const text = (key: string, stringValue: string) => ({
  key,
  value: { value: { case: "stringValue" as const, value: stringValue } },
});
const attributes = (each: number) => Array.from({ length: each }, (_, i) => text(`k${i}`, "value"));
const timeUnixNano = BigInt(Date.now()) * 1_000_000n;

function processorMs(before?: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** Sends as many log records as a request may have; returns how many were refused, and what that took of the processor. */
async function sent(record: object) {
  const logRecords = Array.from({ length: count }, () => record);
  const body = Buffer.from(
    toBinary(
      ExportLogsServiceRequestSchema,
      create(ExportLogsServiceRequestSchema, { resourceLogs: [{ scopeLogs: [{ logRecords }] }] }),
    ),
  );
  const before = process.threadCpuUsage();
  fromBinary(ExportLogsServiceRequestSchema, body);
  const decodedMs = processorMs(before);
  const answers: Awaited<ReturnType<typeof call>>[] = [];
  const { turn, all } = await heldMs(async () =>
    answers.push(await call("POST", "/v1/logs", body, { "content-type": "application/x-protobuf" })),
  );
  const refused = answers.map(({ bytes }) =>
    Number(fromBinary(ExportLogsServiceResponseSchema, bytes).partialSuccess?.rejectedLogRecords),
  );
  return { refused: new Set(refused), times: all / decodedMs, turn };
}

// Five times here; a machine that is three times as slow decodes as slowly.
test.each([
  ["without a name, with 20 attributes", { timeUnixNano, attributes: attributes(20) }],
  [
    "with control characters in their names, and 10 attributes",
    { timeUnixNano, eventName: "a\nb", attributes: attributes(10) },
  ],
  ["that are too old", { timeUnixNano: 1_600_000_000_000_000_000n, eventName: "a", attributes: attributes(10) }],
])("50,000 log records %s take ten times as long as their decoding at most", async (_what, record) => {
  const { refused, times, turn } = await sent(record);
  expect(refused).toEqual(new Set([count]));
  expect(times).toBeLessThan(10);
  expect(turn).toBeLessThan(turnMsMax);
});
