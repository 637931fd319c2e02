import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, gunzipSync, gzipSync } from "node:zlib";
import { create, fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import {
  DataReceiverService,
  PutEventsRequestSchema,
  PutEventsResponseSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { cases } from "../support/cases.ts";
import { envelope, openHttp2, type RawAnswer, rawHttp1 } from "../support/clients.ts";
import { served, testPort } from "../support/port.ts";

/** What a message's first event's name makes of its call. */
const implementation: Partial<ServiceImpl<typeof DataReceiverService>> = {
  putEvents({ events }, context) {
    const [name = ""] = events.map((event) => event.name);
    context.responseHeader.set("x-head", name);
    context.responseTrailer.set("x-tail", "last");
    if (name === "refused") throw new ConnectError("not ✓ this\nline", Code.Aborted, { "x-why": "because" });
    if (name === "large") return { message: "large ".repeat(1000) };
    return { succeeded: events.length, message: name };
  },
};
const port = await testPort([served(DataReceiverService, implementation)]);
const reference = createServer(
  connectNodeAdapter({
    routes: (router) => router.service(DataReceiverService, implementation, { readMaxBytes: 4 * 1024 * 1024 }),
  }),
).listen(0, "127.0.0.1");
await once(reference, "listening");
const ours = openHttp2(port);
const connects = openHttp2({ url: `http://127.0.0.1:${(reference.address() as AddressInfo).port}`, ca: undefined });
afterAll(() => {
  ours.close();
  connects.close();
  reference.close();
});
const { text: key } = await port.key();
const path = "/belfry.receiver.v1.DataReceiverService/PutEvents";

const messageOf = (name: string) => create(PutEventsRequestSchema, { events: [{ name }] });
const binary = (name: string) => toBinary(PutEventsRequestSchema, messageOf(name));
const json = (name: string) => Buffer.from(toJsonString(PutEventsRequestSchema, messageOf(name)));

interface Sent {
  headers?: Record<string, string>;
  body: Buffer | undefined;
}

const request = ({ headers, body }: Sent) => ({
  path,
  headers: { "service-api-key": key, "content-type": "application/grpc", te: "trailers", ...headers },
  body: body && [body],
});

/** What a client makes of an answer. */
function understood({ status, headers, trailers, body }: RawAnswer) {
  const flags = body[0];
  const data = body.subarray(5);
  return {
    status,
    type: headers["content-type"],
    encoding: headers["grpc-encoding"],
    head: headers["x-head"],
    tail: trailers["x-tail"],
    why: trailers["x-why"],
    code: trailers["grpc-status"],
    length: body.byteLength < 5 ? undefined : body.readUInt32BE(1) === data.byteLength,
    flags,
    message: flags === 1 ? gunzipSync(data).toString() : data.toString(),
  };
}

const gzip = { "grpc-encoding": "gzip" };
const asJson = { "content-type": "application/grpc+json" };

describe("a unary call over gRPC is answered as by Connect's own handler", () => {
  test.each<[string, Sent]>([
    ["a message", { body: envelope(binary("one")) }],
    ["an empty message", { body: envelope(Buffer.alloc(0)) }],
    ["a message as JSON", { headers: asJson, body: envelope(json("one")) }],
    ["application/grpc+proto", { headers: { "content-type": "application/grpc+proto" }, body: envelope(binary("a")) }],
    ["a packed message", { headers: gzip, body: envelope(gzipSync(binary("one")), 1) }],
    [
      "a message packed by brotli",
      { headers: { "grpc-encoding": "br" }, body: envelope(brotliCompressSync(binary("one")), 1) },
    ],
    ["a message that might be packed and is not", { headers: gzip, body: envelope(binary("one")) }],
    [
      "a small answer to who takes gzip",
      { headers: { "grpc-accept-encoding": "x,gzip" }, body: envelope(binary("s")) },
    ],
    [
      "a large answer to who takes gzip",
      { headers: { "grpc-accept-encoding": "gzip" }, body: envelope(binary("large")) },
    ],
    ["a large answer to who takes none", { body: envelope(binary("large")) }],
    ["an error with metadata", { body: envelope(binary("refused")) }],
    ["no message", { body: undefined }],
    ["two messages", { body: Buffer.concat([envelope(binary("one")), envelope(binary("two"))]) }],
    ["a message that ends early", { body: envelope(binary("a long name")).subarray(0, 9) }],
    ["a head that ends early", { body: envelope(binary("one")).subarray(0, 3) }],
    ["JSON that is none", { headers: asJson, body: envelope(Buffer.from("{")) }],
    ["an encoding that nobody knows", { headers: { "grpc-encoding": "lzma" }, body: envelope(binary("one"), 1) }],
    ["a time that is none", { headers: { "grpc-timeout": "soon" }, body: envelope(binary("one")) }],
  ])("%s", async (_name, sent) => {
    const [mine, theirs] = await Promise.all([ours.send(request(sent)), connects.send(request(sent))]);
    expect(understood(mine)).toEqual(understood(theirs));
  });

  test("messages of any kind, in pieces of any size", async () => {
    const cut = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 5 });
    const events = fc.array(fc.record({ name: fc.string({ unit: "binary", maxLength: 40 }) }), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(events, cut, fc.boolean(), async (events, sizes, packed) => {
        const bytes = toBinary(PutEventsRequestSchema, create(PutEventsRequestSchema, { events }));
        const whole = packed ? envelope(gzipSync(bytes), 1) : envelope(bytes);
        const ends = [0, ...sizes].map((_, i) => sizes.slice(0, i).reduce((sum, size) => sum + size, 0));
        const pieces = ends.map((begin, i) => whole.subarray(begin, ends[i + 1]));
        const body = pieces.filter(({ byteLength }) => byteLength > 0);
        // Names that no header can hold are the handler's fault.
        fc.pre(/^[\x20-\x7e]*$/.test(events[0]?.name ?? "") && events[0]?.name === events[0]?.name.trim());
        const { path, headers } = request({ headers: gzip, body: whole });
        const [mine, theirs] = await Promise.all([ours, connects].map((to) => to.send({ path, headers, body })));
        expect(understood(mine as RawAnswer)).toEqual(understood(theirs as RawAnswer));
      }),
      { numRuns: cases(100) },
    );
  });
});

describe("a unary call over gRPC", () => {
  test("whose binary message cannot be decoded is code 3", async () => {
    const { trailers } = await ours.send(request({ body: envelope(Buffer.from([255, 255, 255])) }));
    expect(trailers).toMatchObject({
      "grpc-status": "3",
      "grpc-message": expect.stringContaining("cannot%20be%20decoded"),
    });
  });

  test("whose message is packed in an encoding that is not named is code 3", async () => {
    const { trailers } = await ours.send(request({ body: envelope(gzipSync(binary("one")), 1) }));
    expect(trailers["grpc-status"]).toBe("3");
  });

  test("whose error quotes half of a character is code 3 all the same", async () => {
    const { trailers } = await ours.send(
      request({ headers: asJson, body: envelope(Buffer.from('{"events":"\\ud800"}')) }),
    );
    expect(trailers).toMatchObject({ "grpc-status": "3", "grpc-message": expect.stringContaining("ud800") });
  });

  test("whose message grows above the limit is code 8", async () => {
    const bomb = envelope(gzipSync(Buffer.alloc(70 * 1024 * 1024)), 1);
    const { trailers } = await ours.send(request({ headers: gzip, body: bomb }));
    expect(trailers["grpc-status"]).toBe("8");
  });

  test("without a key is code 16, in gRPC's form", async () => {
    const { headers, body } = request({ body: envelope(binary("one")) });
    const answer = await ours.send({ path, headers: { ...headers, "service-api-key": "" }, body });
    expect(understood(answer)).toMatchObject({ status: 200, type: "application/grpc+proto", code: "16", message: "" });
  });

  test("is answered over HTTP/1.1, too", async () => {
    const { headers, trailers, body } = await rawHttp1(port, request({ body: envelope(binary("one")) }));
    expect(headers).toMatchObject({ "content-type": "application/grpc+proto", "x-head": "one" });
    expect(trailers).toMatchObject({ "grpc-status": "0", "x-tail": "last" });
    expect(fromBinary(PutEventsResponseSchema, body.subarray(5))).toMatchObject({ succeeded: 1, message: "one" });
  });
});
