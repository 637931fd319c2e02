import { PassThrough } from "node:stream";
import { gzipSync } from "node:zlib";
import { ConnectError } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import fastify from "fastify";
import { afterAll, expect, test } from "vitest";
import { DataReceiverService, type PutEventsRequest } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";

/*
 * What Connect's plugin for Fastify can keep of what the port promises, and what it cannot (docs/decisions/0011, 0032): a
 * request is counted on the wire before anything is made of it. Its handlers take the raw request from Fastify, and the
 * first code of ours that runs, an interceptor, is given the whole message.
 */
const seen: number[] = [];
const hooks: string[] = [];
const app = fastify();
app.addHook("onRequest", async (request, reply) => {
  if (request.headers["service-api-key"] === undefined) return reply.code(401).send({ code: 16 });
});
// Where Fastify lets a body be looked at, or replaced by another one.
app.addHook("preParsing", async () => {
  hooks.push("preParsing");
  const none = new PassThrough();
  none.end("{}");
  return none;
});
await app.register(fastifyConnectPlugin, {
  readMaxBytes: 16 * 1024 * 1024,
  interceptors: [
    () => async (request) => {
      seen.push((request.message as PutEventsRequest).events.length);
      throw new ConnectError("too many items", 8);
    },
  ],
  routes: (router) => router.service(DataReceiverService, { putEvents: () => ({}) }),
});
const url = await app.listen({ port: 0, host: "127.0.0.1" });
afterAll(() => app.close());

const send = (body: Uint8Array, headers: Record<string, string>) =>
  fetch(`${url}/belfry.receiver.v1.DataReceiverService/PutEvents`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: body as never,
  });

test("a key is asked for before its handlers: that promise it keeps", async () => {
  const answer = await send(Buffer.from("{}"), {});
  expect(answer.status).toBe(401);
  expect(seen).toEqual([]);
});

test("a small body that becomes a large message is unpacked and decoded whole before an interceptor can count it", async () => {
  const count = 200_000;
  const packed = gzipSync(Buffer.from(`{"events":[${"{},".repeat(count - 1)}{}]}`));
  expect(packed.byteLength).toBeLessThan(4096);
  const answer = await send(packed, { "service-api-key": "k", "content-encoding": "gzip" });
  expect(await answer.json()).toMatchObject({ code: "resource_exhausted" });
  expect(seen).toEqual([count]);
});

test("a body that a hook of Fastify's puts in its place is not read: only another raw request would be", async () => {
  seen.length = 0;
  hooks.length = 0;
  await send(Buffer.from('{"events":[{},{}]}'), { "service-api-key": "k" });
  expect(hooks).toEqual(["preParsing"]);
  expect(seen).toEqual([2]);
});
