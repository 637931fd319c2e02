import { gzipSync } from "node:zlib";
import { envelope, type RawRequest } from "../support/clients.ts";

/** A request that is small on the wire, and large once it is read. */
export interface Hostile {
  rpc: string;
  /** Its path over /v1; undefined when it has none. */
  v1: string | undefined;
  json: Buffer;
  binary: Buffer;
  /** Codes that may answer it: 3 and 8 unless it is good. */
  codes?: readonly number[];
}

const receiver = "/belfry.receiver.v1.DataReceiverService";
const queries = "/belfry.events.v1.EventQueryService";
const text = (count: number, open: string, item: string, close: string) =>
  Buffer.from(`${open}${`${item},`.repeat(count - 1)}${item}${close}`);
const many = (count: number, bytes: readonly number[]) => Buffer.alloc(count * bytes.length, Buffer.from(bytes));
const varint = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]);
const held = (number: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([number * 8 + 2, ...varint(bytes.byteLength)]), bytes]);

const events = { rpc: `${receiver}/PutEvents`, v1: "/v1/data-receiver/events" };
const search = { rpc: `${queries}/SearchEvents`, v1: "/v1/events:search" };

/** All of them, by name; `size` says how many of what they repeat. */
export function hostile(size: number): Record<string, Hostile> {
  const clauses = { open: '{"query":{"clause":{"and":{"clauses":[', close: "]}}}}" };
  const clauseBytes = (inner: Buffer) => held(1, held(2, held(1, inner)));
  // More than refuse a request; an item with less fails alone.
  const values = Math.max(size, 140_000);
  const struct = held(4, many(values, [10, 0]));
  return {
    "empty events": { ...events, json: text(size, '{"events":[', "{}", "]}"), binary: many(size, [18, 0]) },
    "empty clauses": {
      ...search,
      json: text(size, clauses.open, "{}", clauses.close),
      binary: clauseBytes(many(size, [10, 0])),
    },
    "a text again and again": {
      ...search,
      json: Buffer.from(
        `{"query":{"sortBy":[{"byField":{${'"field":"",'.repeat(Math.min(size, 200_000))}"order":0}}]}}`,
      ),
      binary: held(1, held(5, held(1, many(size, [10, 0])))),
    },
    "undeclared severities": {
      ...search,
      json: text(size, '{"query":{"severities":[', "99", "]}}"),
      binary: held(1, held(3, many(size, [99]))),
    },
    "values of metadata": {
      ...events,
      json: text(values, '{"events":[{"metadataFields":{"a":[', "0", "]}}]}"),
      binary: held(2, struct),
    },
    "values of metadata, in a stream": {
      rpc: `${receiver}/PutEvent`,
      v1: undefined,
      json: text(values, '{"canonical":{"metadataFields":{"a":[', "0", "]}}}"),
      binary: held(1, struct),
    },
    "clauses of a watch": {
      rpc: `${queries}/WatchEvents`,
      v1: "/v1/events:watch",
      json: text(size, clauses.open, "{}", clauses.close),
      binary: clauseBytes(many(size, [10, 0])),
    },
    "metadata again and again": {
      ...events,
      json: Buffer.from(`{"events":[{${'"metadataFields":{},'.repeat(Math.min(size, 200_000))}"name":""}]}`),
      binary: held(2, many(size, [34, 0])),
    },
    brackets: { ...search, json: Buffer.alloc(size, "["), binary: many(size, [11]) },
    "fields that nobody knows": {
      ...events,
      json: Buffer.from(`{"x":${"[".repeat(90)}${"0,".repeat(size)}0${"]".repeat(90)}}`),
      binary: many(size, [248, 7, 0]),
      // Protobuf passes over them, as long as they are few.
      codes: [0, 3, 8],
    },
  };
}

/** One way to send a request. */
interface Way {
  name: string;
  binary: boolean;
  /** The content type; the one of streams when the RPC is one. */
  type(streamed: boolean): string;
  enveloped(streamed: boolean): boolean;
  encoding(streamed: boolean): string;
}

const fixed = (name: string, type: string): Way => ({
  name,
  binary: !type.endsWith("json"),
  type: () => type,
  enveloped: () => true,
  encoding: () => "grpc-encoding",
});
const connect = (format: "json" | "proto"): Way => ({
  name: `connect ${format}`,
  binary: format === "proto",
  type: (streamed) => `application/${streamed ? "connect+" : ""}${format}`,
  enveloped: (streamed) => streamed,
  encoding: (streamed) => (streamed ? "connect-content-encoding" : "content-encoding"),
});

const ways: readonly Way[] = [
  fixed("grpc", "application/grpc"),
  fixed("grpc json", "application/grpc+json"),
  fixed("grpc-web", "application/grpc-web+proto"),
  fixed("grpc-web json", "application/grpc-web+json"),
  connect("proto"),
  connect("json"),
];

const plainAnswers = {
  "accept-encoding": "identity",
  "grpc-accept-encoding": "identity",
  "connect-accept-encoding": "identity",
};

/** The requests that carry a body, over every protocol. */
export function requestsOf(one: Hostile, key: string, packed: boolean): { name: string; request: RawRequest }[] {
  const streamed = /PutEvent$|Watch/.test(one.rpc);
  const json = packed ? gzipSync(one.json, { level: 1 }) : one.json;
  const binary = packed ? gzipSync(one.binary, { level: 1 }) : one.binary;
  const rpcs = ways.map((way) => {
    const bytes = way.binary ? binary : json;
    const headers = {
      "service-api-key": key,
      "content-type": way.type(streamed),
      ...plainAnswers,
      ...(packed && { [way.encoding(streamed)]: "gzip" }),
    };
    const body = [way.enveloped(streamed) ? envelope(bytes, packed ? 1 : 0) : bytes];
    return { name: way.name, request: { path: one.rpc, headers, body } };
  });
  if (one.v1 === undefined) return rpcs;
  const headers = {
    "service-api-key": key,
    "content-type": "application/json",
    ...(packed && { "content-encoding": "gzip" }),
  };
  return [...rpcs, { name: "/v1", request: { path: one.v1, headers, body: [json] } }];
}
