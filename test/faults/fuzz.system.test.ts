import { create, type DescMessage, type MessageInitShape, toBinary, toJsonString } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { SearchEntitiesRequestSchema } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { SearchEventsRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { PutEventsRequestSchema, PutModelsRequestSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { rounds } from "../support/cases.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { corpus } from "./corpus.ts";
import { ledger } from "./ledger.ts";
import { type Random, random, seedOf } from "./random.ts";

const seed = seedOf(19);
const requestsEach = rounds(150);
const server = await testServer({}, { statementTimeoutMs: 4000 });
const { id, headers } = await testTenant(server.database.sql);

interface Target {
  rpc: string;
  path: string;
  binary: Uint8Array[];
  json: string[];
}

function target<S extends DescMessage>(rpc: string, path: string, schema: S, inits: MessageInitShape<S>[]): Target {
  const messages = inits.map((init) => create(schema, init));
  const binary = messages.map((message) => toBinary(schema, message));
  return { rpc, path, binary, json: messages.map((message) => toJsonString(schema, message)) };
}

const dimensions = { source: "web-1", ключ: "\u{1F600}" };
const timestamp = BigInt(Date.now());
const filter = (field: string, operation: number, value: object) =>
  ({ clause: { filter: { field, operation, value: { kind: value } } } }) as never;

const targets = [
  target("belfry.receiver.v1.DataReceiverService/PutEvents", "/v1/data-receiver/events", PutEventsRequestSchema, [
    {
      detailedResponse: true,
      events: [
        {
          name: "disk full",
          dimensions,
          timestamp,
          severity: 4,
          status: 1,
          acknowledged: true,
          summary: "a",
          body: "b",
        },
        { name: "e", dimensions, timestamp, metadataFields: { list: [1, null, { a: 1.5 }], text: "x" } },
      ],
    },
  ]),
  target("belfry.receiver.v1.DataReceiverService/PutModels", "/v1/data-receiver/models", PutModelsRequestSchema, [
    { models: [{ timestamp, dimensions, metadataFields: { name: "n", type: "t", deep: { a: [true] } } }] },
  ]),
  target("belfry.events.v1.EventQueryService/SearchEvents", "/v1/events:search", SearchEventsRequestSchema, [
    { query: { severities: [4], pageInput: { limit: 10, cursor: "AAAA" } } } as never,
    { query: filter("dimensions.source", 1, { case: "stringValue", value: "web-1" }) } as never,
  ]),
  target("belfry.entities.v1.EntityService/SearchEntities", "/v1/entities:search", SearchEntitiesRequestSchema, [
    { searchInput: { query: filter("name", 1, { case: "stringValue", value: "x" }) } } as never,
  ]),
];

const odd = [0, 1, 7, 8, 10, 127, 128, 255];
const oddTexts = [
  "null",
  "-1",
  "1e999",
  "9223372036854775808",
  '"\\u0000"',
  '"\\ud800"',
  "[]",
  "{}",
  "true",
  '"NaN"',
  "[[[[",
];

/** The bytes, changed in a few places. */
function mutated(bytes: Uint8Array, { int, pick }: Random): Uint8Array {
  let result = Buffer.from(bytes);
  for (let i = int(1, 4); i > 0; i--) {
    const from = int(0, result.length);
    const to = Math.min(result.length, from + int(0, 12));
    const [before, cut, after] = [result.subarray(0, from), result.subarray(from, to), result.subarray(to)];
    const middle = pick([
      () => Buffer.from([pick(odd)]),
      () => Buffer.alloc(0),
      () => Buffer.concat([cut, cut, cut]),
      () => Buffer.from(pick(oddTexts)),
    ])();
    result = Buffer.concat([before, middle, after]);
  }
  return result;
}

/** JSON that stays JSON: one of its values is another. */
function mutatedJson(text: string, { int, pick }: Random): string {
  const values = [...text.matchAll(/"(?:[^"\\]|\\.)*"(?!:)|-?\d+(?:\.\d+)?|true|false|null|\[\]|\{\}/g)];
  if (values.length === 0) return text;
  const chosen = values[int(0, values.length - 1)] as RegExpMatchArray & { index: number };
  return text.slice(0, chosen.index) + pick(oddTexts) + text.slice(chosen.index + chosen[0].length);
}

async function send(path: string, contentType: string, body: Uint8Array | string) {
  const response = await fetch(server.url + path, {
    method: "POST",
    headers: { ...headers, "content-type": contentType },
    body: body as never,
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.text();
  const refusal = response.ok ? undefined : (JSON.parse(text) as { code: number | string; message: string });
  return { status: response.status, ...refusal };
}

/** Codes that say the caller is wrong, or that what is asked for is not built. */
const fair = new Set<unknown>([undefined, 3, 5, 12, "invalid_argument", "not_found", "unimplemented"]);

async function check(path: string, contentType: string, body: Uint8Array | string) {
  const answer = await send(path, contentType, body).catch((error) => ({
    code: String(error),
    status: 0,
    message: "",
  }));
  if (fair.has(answer.code)) return undefined;
  const again = JSON.stringify({ path, contentType, base64: Buffer.from(body).toString("base64") });
  return `${answer.status} ${answer.code} ${answer.message}; for the corpus: ${again}`;
}

describe(`requests that are nearly right are answered, and blamed on the caller (SEED=${seed})`, () => {
  test.each(targets)("$rpc", async ({ rpc, path, binary, json }) => {
    const choose = random(seed, rpc.length);
    const wrong: (string | undefined)[] = [];
    for (const [i, body] of binary.entries()) {
      expect([
        await check(`/${rpc}`, "application/proto", body),
        await check(path, "application/json", json[i] as string),
      ]).toEqual([undefined, undefined]);
    }
    for (let i = 0; i < requestsEach; i++) {
      const text = choose.pick(json);
      wrong.push(await check(`/${rpc}`, "application/proto", mutated(choose.pick(binary), choose)));
      wrong.push(await check(path, "application/json", mutated(Buffer.from(text), choose)));
      wrong.push(await check(path, "application/json", mutatedJson(text, choose)));
    }
    expect(wrong.filter((line) => line !== undefined)).toEqual([]);
  });

  test("those that were once answered wrongly", async () => {
    const wrong = [];
    for (const { path, contentType, base64 } of corpus) {
      wrong.push(await check(path, contentType, Buffer.from(base64, "base64")));
    }
    expect(wrong.filter((line) => line !== undefined)).toEqual([]);
  });

  test("leave events whose counts are right", async () => {
    const wrong = await ledger().compare(server.database.sql, id);
    expect(wrong.filter((line) => !line.startsWith("stored and never sent"))).toEqual([]);
  });
});
