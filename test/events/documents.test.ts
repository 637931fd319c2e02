import { readFileSync } from "node:fs";
import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Severity, SeveritySchema, Status, StatusSchema } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const page = readFileSync(new URL("../../docs/events.md", import.meta.url), "utf8");
const [, timeline = ""] = /```timeline\n(.*?)```/s.exec(page) ?? [];
const lines = timeline
  .trim()
  .split("\n")
  .map((line) => /^(-?\d+) +(SEVERITY_\w+) +(STATUS_\w+) +(.*)$/.exec(line) ?? []);

const numberOf = (values: readonly { name: string; number: number }[], name = "") =>
  values.find((value) => value.name === name)?.number ?? 0;
const nameOf = (numbers: object, number = 0) => Object.entries(numbers).find(([, value]) => value === number)?.[0];

test("the timeline of docs/events.md is what happens, report by report", async () => {
  expect(lines.length).toBeGreaterThanOrEqual(10);
  const server = await testServer();
  const tenant = await testTenant(server.database.sql);
  const grpc = transport(server.target, "grpc", tenant.headers);
  const receiver = createClient(DataReceiverService, grpc);
  const queries = createClient(EventQueryService, grpc);
  const base = BigInt(Date.now() - 3_600_000);
  const seconds = (ms = 0n) => Number((ms - base) / 1000n);
  for (const [line, second, severity, status, after] of lines) {
    await receiver.putEvents({
      events: [
        {
          name: "disk full",
          dimensions: { source: "web-1" },
          timestamp: base + BigInt(second ?? 0) * 1000n,
          severity: numberOf(SeveritySchema.values, severity) as Severity,
          status: numberOf(StatusSchema.values, status) as Status,
        },
      ],
    });
    const { results } = await queries.searchEvents({
      query: { sortBy: [{ byField: { field: "startTime" } }] },
    });
    const found = results[0]?.occurrences.map(
      (o) =>
        `${o.id.split(":")[1]}: ${nameOf(Status, o.status)} ${nameOf(Severity, o.severity)} ` +
        `${seconds(o.startTime)}-${seconds(o.lastSeen)} x${o.instanceCount}`,
    );
    expect(found?.join(", "), line).toBe(after);
  }
});
