import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { MetricSchema, TaggedMetricSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transaction } from "../../src/db/transaction.ts";
import { paced } from "../../src/event-loop.ts";
import { deleteOld } from "../../src/events/retention.ts";
import { stored } from "../metrics/points.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer(
  { BELFRY_SERIES_MAX: "4", BELFRY_ENTITIES_MAX: "5", BELFRY_EVENTS_MAX: "2" },
  { annotationsMax: 2 },
);
const { sql } = server.database;
const nowMs = Date.now();
const hourMs = 3_600_000;
const dimensions = { host: "web-1", zone: "b", rack: "7" };
const at = (timeMs: number) => BigInt(timeMs);
const metrics: MessageInitShape<typeof MetricSchema>[] = [
  { metric: "cpu", timestamp: at(nowMs - 5000), value: 1, dimensions },
  { metric: "cpu", timestamp: at(nowMs - 25 * hourMs), value: 2, dimensions },
  { metric: "disk", timestamp: at(nowMs), value: 3, dimensions, metadataFields: { units: "By" } },
  { metric: "cpu", timestamp: at(nowMs + hourMs), value: 4, dimensions },
  { metric: "cpu", timestamp: at(nowMs - 5000), value: 5, dimensions: { rack: "7", zone: "b", host: "web-1" } },
  { metric: "", timestamp: at(nowMs), value: 6, dimensions },
  { metric: "cpu", timestamp: 5n, value: 7, dimensions },
  { metric: "cpu", timestamp: at(nowMs), dimensions },
  { metric: "cpu", timestamp: at(nowMs), value: 8, dimensions: { host: "web-1", name: "x" } },
  { metric: "one too many", timestamp: at(nowMs), value: 9, dimensions: { host: "web-2" } },
  { metric: "cpu", timestamp: at(nowMs - 23 * hourMs), value: 10, dimensions },
];
const taggedMetrics: MessageInitShape<typeof TaggedMetricSchema>[] = [
  { metric: "cpu", timestamp: at(nowMs - 6000), value: 11, tags: dimensions },
  { metric: "memory", timestamp: at(nowMs - 6000), value: 12, tags: dimensions },
  { metric: "swap", timestamp: at(nowMs - 6000), value: 13, tags: dimensions },
];
const request = { metrics, taggedMetrics, compactMetrics: [{ id: "7" }], detailedResponse: true };

describe.each(["grpc", "connect-json"] as const)("points of series that are known, over %s", (protocol) => {
  test("are answered and stored as those of new ones are", async () => {
    const tenant = await testTenant(sql);
    const receiver = createClient(DataReceiverService, transport(server.target, protocol, tenant.headers));
    const first = await receiver.putMetrics(request);
    expect(first).toMatchObject({ succeeded: 7, failed: 8, message: "7 of 15 metrics processed" });
    const errors = first.failedMetrics.map(({ error }) => error);
    for (const [i, part] of [
      "metrics[1].timestamp: must not be more than 24 h old",
      "metrics[3].timestamp: must not be more than 600 s ahead",
      "metrics[5].metric: must not be empty",
      "metrics[6].timestamp: must be in ms since the epoch",
      "metrics[7].value: is required",
      'metrics[8].dimensions["name"]: must not be name',
      "metrics[9]: the tenant has 4 series",
    ].entries())
      expect(errors[i]).toContain(part);
    // The same again, when all that is good is known: as bytes, or by its names.
    for (const _ of [2, 3]) {
      const again = await receiver.putMetrics(request);
      const plain = (text: string) => text.replace(/now is \d+/, "");
      expect(again.failedMetrics.map(({ error }) => plain(error))).toEqual(errors.map(plain));
      expect({ ...again, failedMetrics: [] }).toEqual({ ...first, failedMetrics: [] });
    }
    expect(await stored(sql, tenant.id, nowMs - 24 * hourMs, nowMs)).toEqual({
      cpu: [
        [nowMs - 23 * hourMs, 10],
        [nowMs - 6000, 11],
        [nowMs - 5000, 5],
      ],
      disk: [[nowMs, 3]],
      memory: [[nowMs - 6000, 12]],
      swap: [[nowMs - 6000, 13]],
    });
    const rows = await sql`select metric, units from series where tenant_id = ${tenant.id} and units <> ''`;
    expect(rows).toEqual([{ metric: "disk", units: "By" }]);
  });
});

test("a stream of points of known series is stored as one of new ones", async () => {
  const tenant = await testTenant(sql);
  const receiver = createClient(DataReceiverService, transport(server.target, "grpc", tenant.headers));
  async function* points() {
    for (const value of metrics) yield { metric: { case: "canonical" as const, value } };
  }
  const first = await receiver.putMetric(points());
  expect(first).toMatchObject({ succeeded: 5, failed: 6 });
  expect(await receiver.putMetric(points())).toMatchObject({ succeeded: 5, failed: 6 });
});

describe("beyond the bounds of a tenant", () => {
  const tooMany = "the tenant has 5 entities, as many as BELFRY_ENTITIES_MAX allows";
  const timestamp = BigInt(nowMs);
  const host = (source: string) => ({ timestamp, dimensions: { source } });
  const event = (source: string, name: string) => ({ ...host(source), name, severity: 5 as never, status: 1 as never });
  const all = { detailedResponse: true };

  async function world() {
    const tenant = await testTenant(sql);
    const grpc = transport(server.target, "grpc", tenant.headers);
    return {
      tenant,
      receiver: createClient(DataReceiverService, grpc),
      queries: createClient(EventQueryService, grpc),
      management: createClient(EventManagementService, grpc),
    };
  }

  test("models, points and events of further entities fail by themselves, those of known ones are stored", async () => {
    const { receiver } = await world();
    await receiver.putModels({ models: ["a", "b", "c", "d", "e"].map(host) });
    const put = await receiver.putModels({ models: ["a", "f", "b", "f"].map(host), ...all });
    const failedModels = [1, 3].map((i) => ({ error: `models[${i}]: ${tooMany}` }));
    expect(put).toMatchObject({ succeeded: 2, failed: 2, failedModels });
    const points = ["g", "a"].map((source) => ({ ...host(source), metric: "cpu", value: 1 }));
    const failedMetrics = [{ error: `metrics[0]: ${tooMany}` }];
    expect(await receiver.putMetrics({ metrics: points, ...all })).toMatchObject({
      succeeded: 1,
      failed: 1,
      failedMetrics,
    });
    const events = [event("h", "full"), event("b", "full")];
    const failedEvents = [{ error: `events[0]: ${tooMany}` }];
    expect(await receiver.putEvents({ events, ...all })).toMatchObject({ succeeded: 1, failed: 1, failedEvents });
    // The same bound holds for what comes as a stream, and for requests that are stored together.
    const streams = ["i", "c", "k"].map(async (source) => {
      async function* one() {
        yield { model: { case: "canonical" as const, value: host(source) } };
      }
      return (await receiver.putModel(one())).succeeded;
    });
    expect(await Promise.all(streams)).toEqual([0, 1, 0]);
  });

  test("further events fail, known ones go on, and there is room again where some are deleted", async () => {
    const { receiver, tenant } = await world();
    for (const name of ["one", "two"]) await receiver.putEvents({ events: [event("a", name)] });
    const answer = await receiver.putEvents({
      events: [event("a", "one"), event("a", "two"), event("b", "one")],
      ...all,
    });
    const error = "events[2]: the tenant has 2 events, as many as BELFRY_EVENTS_MAX allows";
    expect(answer).toMatchObject({ succeeded: 2, failed: 1, failedEvents: [{ error }] });
    const closing = { ...event("a", "one"), timestamp: timestamp + 1n, status: 3 as never };
    expect(await receiver.putEvents({ events: [closing], ...all })).toMatchObject({ succeeded: 1 });
    await transaction(sql, (tx) => deleteOld(tx, tenant.id, timestamp + 1000n));
    expect(await receiver.putEvents({ events: [event("b", "one")], ...all })).toMatchObject({ succeeded: 1 });
    expect((await sql`select from events where tenant_id = ${tenant.id}`).count).toBe(2);
  });

  test("further annotations of an occurrence fail", async () => {
    const { receiver, queries, management } = await world();
    await receiver.putEvents({ events: [event("a", "one")] });
    const { results } = await queries.searchEvents({ query: {} });
    const occurrenceId = results[0]?.occurrences[0]?.id ?? "";
    const one = { eventId: results[0]?.id ?? "", occurrenceId, annotation: "a" };
    const { annotationResponses } = await management.annotateEvents({ annotations: [one, one, one] });
    const error = "the occurrence has 2 annotations already, the most that it may have";
    expect(annotationResponses.map((each) => each.error)).toEqual(["", "", error]);
  });
});

test("points of a tenant whose expressions have used up its share of the process wait, and its events do not", async () => {
  const tenant = await testTenant(sql);
  const receiver = createClient(DataReceiverService, transport(server.target, "grpc", tenant.headers));
  paced(undefined, tenant.id).share?.spend(400_000_000);
  const sent = receiver.putMetrics({ metrics: [{ metric: "cpu", timestamp: at(nowMs), value: 1, dimensions }] });
  await expect(sent).rejects.toMatchObject({ code: Code.ResourceExhausted });
  const event = { name: "down", timestamp: at(nowMs), dimensions, severity: Severity.CRITICAL };
  expect(await receiver.putEvents({ events: [event] })).toMatchObject({ succeeded: 1 });
});
