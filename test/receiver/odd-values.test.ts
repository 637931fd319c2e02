import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const timestamp = BigInt(Date.now());
const good = { name: "good", timestamp, dimensions: { source: "a" } };

describe.each(["grpc", "connect-json"] as const)("over %s", (protocol) => {
  async function clients() {
    const tenant = await testTenant(server.database.sql);
    const way = transport(server.target, protocol, tenant.headers);
    return {
      ...tenant,
      receiver: createClient(DataReceiverService, way),
      events: createClient(EventQueryService, way),
      entities: createClient(EntityService, way),
    };
  }

  test("a dimension or a member of the metadata may be called __proto__", async () => {
    const { receiver, events, headers } = await clients();
    const dimensions = JSON.parse('{"__proto__":"x","source":"a"}');
    const metadataFields = JSON.parse('{"__proto__":{"deep":1},"b":2}');
    await receiver.putEvents({ events: [{ name: "disk full", timestamp, dimensions, metadataFields }] });
    const names = ["dimensions.__proto__", "metadataFields.__proto__", "coreProperties.__proto__"];
    for (const fields of [[], names.map((field) => ({ field }))]) {
      const { results } = await events.searchEvents({ query: { fields } });
      const occurrence = results[0]?.occurrences[0];
      expect(Object.entries(occurrence?.dimensions ?? {})).toContainEqual(["__proto__", "x"]);
      expect(Object.entries(occurrence?.metadataFields ?? {})).toContainEqual(["__proto__", { deep: 1 }]);
      expect(Object.entries(occurrence?.coreProperties ?? {})).toContainEqual(["__proto__", ["x"]]);
    }
    const { body } = await v1(server.url, headers)("POST", "/v1/events:search", {
      query: { fields: names.map((field) => ({ field })) },
    });
    expect(Object.keys(body.results[0].occurrences[0].coreProperties)).toEqual(["__proto__"]);
  });

  // Connect's JSON has no form for it but a number beyond all doubles: below.
  test.skipIf(protocol === "connect-json")("a number that JSON cannot hold fails its item alone", async () => {
    const { receiver, events } = await clients();
    const metadataFields = { list: [Number.POSITIVE_INFINITY] };
    const answer = await receiver.putEvents({ events: [{ ...good, metadataFields }, good], detailedResponse: true });
    expect(answer).toMatchObject({ succeeded: 1, failed: 1 });
    expect(answer.failedEvents[0]?.error).toBe('events[0].metadataFields["list"][0]: must be finite');
    expect((await events.searchEvents({ query: {} })).results).toHaveLength(1);
  });
});

test("metadata as deep as they may be can be read over gRPC, deeper ones fail their item", async () => {
  const { headers } = await testTenant(server.database.sql);
  const deep = (levels: number) => JSON.parse(`${'{"k":'.repeat(levels)}1${"}".repeat(levels)}`);
  const put = (levels: number) =>
    v1(server.url, headers)("POST", "/v1/data-receiver/events", {
      events: [{ ...good, timestamp: String(timestamp), metadataFields: deep(levels) }],
      detailedResponse: true,
    });
  expect((await put(30)).body).toMatchObject({ succeeded: 1 });
  const failed = await put(31);
  expect(failed.body.failedEvents[0].error).toContain("must not lie deeper than 30 levels");
  const events = createClient(EventQueryService, transport(server.target, "grpc", headers));
  const { results } = await events.searchEvents({ query: {} });
  expect(results[0]?.occurrences[0]?.metadataFields).toEqual(deep(30));
});

describe("Connect's JSON, which lets more through than JSON may hold", () => {
  const path = "/belfry.receiver.v1.DataReceiverService/PutEvents";
  const put = async (metadataFields: string) => {
    const { headers } = await testTenant(server.database.sql);
    const item = (metadata: string) =>
      `{"name":"a","timestamp":"${timestamp}","dimensions":{"source":"a"},"metadataFields":${metadata}}`;
    const body = `{"events":[${item(metadataFields)},${item("{}")}],"detailedResponse":true}`;
    return v1(server.url, headers)("POST", path, body);
  };

  test.each([['{"a":"\\u0000"}', 'events[0].metadataFields["a"]: must not contain NUL']])(
    "%s fails its item alone",
    async (metadata, error) => {
      expect(await put(metadata)).toMatchObject({
        status: 200,
        body: { succeeded: 1, failed: 1, failedEvents: [{ error }] },
      });
    },
  );

  test.each([
    ['{"a":["\\ud800"]}', "events[0].metadataFields.a[0]: a lone surrogate"],
    ['{"a":{"\\udc00":1}}', "a lone surrogate"],
    ['{"a":1e999}', "is outside the range of a double"],
  ])("%s is refused, as over /v1", async (metadata, error) => {
    const answer = await put(metadata);
    expect(answer).toMatchObject({ status: 400, body: { code: "invalid_argument" } });
    expect(answer.body.message).toContain(error);
  });
});
