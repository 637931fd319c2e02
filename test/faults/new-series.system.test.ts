import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { PutMetricsRequestSchema, PutMetricsResponseSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer({});
const { sql } = server.database;
const seriesCount = 20_000;
/** As many requests of a neighbour are stored meanwhile at least: 60 to 200 on two processors, one if it waits for the end. */
const meanwhileMin = 10;

/** PutMetrics of a point of each of `count` series, every fifth of them of an entity of its own, the others fifty an entity. */
function body(name: string, count: number): Uint8Array {
  const timestamp = BigInt(Date.now());
  const metrics = Array.from({ length: count }, (_, i) => ({
    metric: `metric_${i % 50}`,
    timestamp,
    value: i,
    dimensions: i % 5 === 0 ? { host: `${name}-alone-${i}` } : { host: `${name}-${Math.floor(i / 50)}` },
  }));
  return toBinary(PutMetricsRequestSchema, create(PutMetricsRequestSchema, { metrics }));
}

async function put(headers: Record<string, string>, bytes: Uint8Array) {
  const answer = await fetch(`${server.url}/belfry.receiver.v1.DataReceiverService/PutMetrics`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/proto" },
    body: Buffer.from(bytes),
  });
  if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
  return fromBinary(PutMetricsResponseSchema, new Uint8Array(await answer.arrayBuffer()));
}

test("thousands of new series in one request are stored on a fresh database, and another tenant's points are not held up", async () => {
  const [many, few] = [await testTenant(sql), await testTenant(sql)];
  const [large, small] = [body("many", seriesCount), body("few", 10)];
  for (let i = 0; i < 20; i++) await put(few.headers, small);
  let stored = false;
  const storing = put(many.headers, large).finally(() => {
    stored = true;
  });
  let meanwhile = 0;
  for (; !stored; meanwhile += 1) expect(await put(few.headers, small)).toMatchObject({ succeeded: 10, failed: 0 });
  expect(await storing).toMatchObject({ succeeded: seriesCount, failed: 0 });
  const [row] = await sql<{ count: number }[]>`select count(*)::int4 as count from series where tenant_id = ${many.id}`;
  expect(row?.count).toBe(seriesCount);
  expect(meanwhile).toBeGreaterThanOrEqual(meanwhileMin);
});
