import { gzipSync } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import { ConnectError, createContextKey, createContextValues } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import fastify from "fastify";
import { afterAll, expect, test } from "vitest";
import { EventQueryService, SearchEventsResponseSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService, type PutEventsRequest } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";

/*
 * What Connect's plugin for Fastify can keep of what the port promises, and what it cannot (design/protocols): a hook
 * before its handlers can refuse, count and read a request; nothing can be put between an RPC and the bytes of its response.
 */
const readKey = createContextKey<number | undefined>(undefined);
const read: unknown[] = [];
const turns: number[] = [];
const app = fastify();
const counted = new WeakMap<object, number>();
const large = create(SearchEventsResponseSchema, {
  results: Array.from({ length: 60_000 }, (_, i) => ({ id: `event-${i}`, name: "x".repeat(200), count: BigInt(i) })),
});

app.addHook("onRequest", async (request, reply) => {
  if (request.headers["service-api-key"] === undefined) return reply.code(401).send({ code: 16 });
});
// As the port's own reader: the bytes are counted as they come, and what is too much is refused before it is unpacked.
app.addHook("preHandler", async (request) => {
  let bytes = 0;
  for await (const piece of request.raw) bytes += piece.byteLength;
  counted.set(request, bytes);
  delete request.raw.headers["content-encoding"];
  delete request.raw.headers["content-length"];
  async function* stood() {
    yield Buffer.from("{}");
  }
  request.body = stood();
});
await app.register(fastifyConnectPlugin, {
  contextValues: (request) => createContextValues().set(readKey, counted.get(request)),
  requestGate: ({ values }) => {
    if ((values.get(readKey) ?? 0) > 2048) throw new ConnectError("too many items", 8);
  },
  routes: (router) => {
    router.service(DataReceiverService, {
      putEvents(request: PutEventsRequest, { values }) {
        read.push([request.events.length, values.get(readKey)]);
        return {};
      },
    });
    router.service(EventQueryService, {
      searchEvents() {
        let during = 0;
        const tick = setInterval(() => {
          during += 1;
        }, 1);
        sent = () => {
          clearInterval(tick);
          turns.push(during);
        };
        return large;
      },
    });
  },
});
let sent = () => {};
app.addHook("onRequest", async (_request, reply) => {
  const { raw } = reply;
  const own = raw.writeHead;
  raw.writeHead = ((...given: unknown[]) => {
    sent();
    return Reflect.apply(own, raw, given);
  }) as never;
});
const url = await app.listen({ port: 0, host: "127.0.0.1" });
afterAll(() => app.close());

const send = (path: string, body: Uint8Array, headers: Record<string, string>) =>
  fetch(`${url}/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: body as never,
  });
const put = "belfry.receiver.v1.DataReceiverService/PutEvents";

test("a key is asked for before its handlers: that promise it keeps", async () => {
  expect((await send(put, Buffer.from("{}"), {})).status).toBe(401);
  expect(read).toEqual([]);
});

test("a body that is counted and read before its handlers: that promise it keeps, with a stand-in for the body", async () => {
  const body = gzipSync(Buffer.from('{"events":[{},{}]}'));
  const headers = { "service-api-key": "k", "content-encoding": "gzip" };
  expect((await send(put, body, headers)).status).toBe(200);
  expect(read).toEqual([[0, body.byteLength]]);
  expect(await (await send(put, Buffer.alloc(4096, 32), headers)).json()).toMatchObject({ code: "resource_exhausted" });
  expect(read).toHaveLength(1);
});

test("a large response is encoded at once, while no other client is served: no code of ours runs before its bytes", async () => {
  const answer = await send("belfry.events.v1.EventQueryService/SearchEvents", Buffer.from("{}"), {
    "service-api-key": "k",
    "accept-encoding": "identity",
  });
  expect(((await answer.json()) as { results: unknown[] }).results).toHaveLength(60_000);
  expect(turns).toHaveLength(1);
  expect(turns[0]).toBeLessThan(3);
});
