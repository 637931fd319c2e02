import { randomUUID } from "node:crypto";
import { constants } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { codeOf, envelope, httpVersions, openHttp2, raw, rawHttp1 } from "../support/clients.ts";
import { frame, frameType, openFrames, post, uint32 } from "../support/frames.ts";
import { served, testPort } from "../support/port.ts";

const MiB = 1024 * 1024;
let called = 0;
const services = [
  served(DataReceiverService, {
    putEvents({ events }) {
      called += 1;
      return { succeeded: events.length };
    },
    async putEvent(requests) {
      let succeeded = 0;
      for await (const _ of requests) succeeded += 1;
      return { succeeded };
    },
  }),
  served(EntityService, { searchEntities: () => ({}) }),
];
const port = await testPort(services);
const secure = await testPort(services, { secure: true, database: port.database });
const impatient = await testPort(services, {
  database: port.database,
  settings: { streamIdleMs: 300, deadlineMsMax: 900, streamBytesMax: 64 * 1024 },
});

const json = "/v1/data-receiver/events";
const rpc = "/belfry.receiver.v1.DataReceiverService/PutEvents";

/** Ways to send that do not read the answer before all is sent, or the connection breaks. */
async function* blindly(bytes: number) {
  for (let sent = 0; sent < bytes; sent += 64 * 1024) yield Buffer.alloc(Math.min(64 * 1024, bytes - sent), 32);
}

describe.each(Object.entries({ plain: port, TLS: secure }))("a body too large is told so, %s", (_name, target) => {
  test.each([5, 11, 30])("%i MiB over HTTP/1.1, on a connection that is kept and one that closes", async (size) => {
    const { Agent: PlainAgent } = await import("node:http");
    const { Agent: SecureAgent } = await import("node:https");
    const key = (await target.key()).text;
    for (let i = 0; i < 5; i += 1) {
      for (const announced of [true, false]) {
        for (const keepAlive of [true, false]) {
          const agent = target.ca ? new SecureAgent({ keepAlive }) : new PlainAgent({ keepAlive });
          const headers = {
            "service-api-key": key,
            "content-type": "application/json",
            ...(announced && { "content-length": String(size * MiB) }),
          };
          const path = "/v1/modelcontext/entities:search";
          const answer = await rawHttp1(target, { path, headers, body: blindly(size * MiB) }, agent);
          expect(answer.status).toBe(413);
          expect(JSON.parse(answer.body.toString())).toMatchObject({ code: 8 });
          agent.destroy();
        }
      }
    }
  });
});

describe.each(httpVersions)("HTTP/%s", (version) => {
  async function* pieces(all: string[], everyMs: number) {
    for (const piece of all) {
      yield Buffer.from(piece);
      await sleep(everyMs);
    }
    await new Promise(() => {});
  }
  const send = async (path: string, type: string, all: string[], everyMs = 0) => {
    const headers = { "content-type": type, "service-api-key": (await impatient.key()).text };
    return await raw(impatient, version, { path, headers, body: pieces(all, everyMs) });
  };
  test.each([
    ["/v1", json, "application/json"],
    ["Connect", rpc, "application/json"],
  ])("half a body and then nothing is code 4: %s", async (_way, path, type) => {
    const answer = await send(path, type, ['{"events":[']);
    expect([answer.status, codeOf(answer)]).toEqual([504, path === rpc ? "deadline_exceeded" : 4]);
  });

  test.each([
    ["/v1", json],
    ["Connect", rpc],
  ])("a body that trickles ends with the longest deadline: %s", async (_way, path) => {
    const answer = await send(path, "application/json", Array(100).fill(" "), 100);
    expect(answer.status).toBe(504);
    expect(answer.ms).toBeGreaterThan(800);
  });
});

const uploads = [
  { path: json, type: "application/json", half: Buffer.from('{"events":[{},') },
  { path: rpc, type: "application/json", half: Buffer.from('{"events":[{},') },
  { path: rpc, type: "application/proto", half: Buffer.from([0x0a, 0, 0x0a]) },
  { path: rpc, type: "application/grpc", half: envelope(Buffer.alloc(100)).subarray(0, 50) },
];

describe("an upload over HTTP/2 that is reset is cancelled, and its RPC never called", () => {
  const own = () => `reset-${randomUUID()}`;

  test.each(uploads)("$path as $type, by Node's client", async ({ path, type, half }) => {
    const { session, close } = openHttp2(port);
    const id = own();
    const headers = { "content-type": type, "service-api-key": (await port.key()).text, "x-request-id": id };
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    stream.on("error", () => {});
    stream.write(half);
    await sleep(50);
    stream.close(constants.NGHTTP2_CANCEL);
    // Node ends a stream before it resets it: the end alone can arrive first, and half a body is then refused.
    expect(["CANCELLED", "INVALID_ARGUMENT"]).toContain((await port.lineOf(id)).code);
    expect(called).toBe(0);
    close();
  });

  test.each(uploads)("$path as $type, by a client that sends the reset alone", async ({ path, type, half }) => {
    const { socket } = await openFrames(port.url);
    const id = own();
    const headers = { "content-type": type, "service-api-key": (await port.key()).text, "x-request-id": id };
    socket.write(post(1, path, headers));
    socket.write(frame(frameType.data, 0, 1, half));
    await sleep(50);
    socket.write(frame(frameType.reset, 0, 1, uint32(constants.NGHTTP2_CANCEL)));
    expect(await port.lineOf(id)).toMatchObject({ code: "CANCELLED" });
    expect(called).toBe(0);
    socket.destroy();
  });
});
