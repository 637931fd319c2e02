import { once } from "node:events";
import { constants } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { afterAll, describe, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { httpVersions, openHttp2, raw } from "../support/clients.ts";
import { closing, frame, frameType, openFrames, openSocket, post, uint32 } from "../support/frames.ts";
import { loopTurns, turnMsMax } from "../support/loop-turns.ts";
import { served, testPort } from "../support/port.ts";

const service = served(DataReceiverService, { putEvents: ({ events }) => ({ succeeded: events.length }) });
const port = await testPort([service]);
const small = await testPort([service], { database: port.database, settings: { connectionsMax: 20 } });
const secure = await testPort([service], { database: port.database, secure: true, settings: { connectionsMax: 20 } });
const health = { method: "GET", path: "/healthz" };
const path = "/v1/data-receiver/events";

const repeated = (count: number, piece: Buffer) => Buffer.concat(Array.from({ length: count }, () => piece));

describe("an HTTP/2 connection that floods is ended, and told to calm down", () => {
  test.each([
    ["PING", frame(frameType.ping, 0, 0, Buffer.alloc(8))],
    ["SETTINGS", frame(frameType.settings, 0, 0)],
  ])("%s", async (_what, each) => {
    // At once, and as fast as they are answered.
    for (const together of [5000, 100]) {
      const { socket, told } = await openFrames(port.url);
      const closed = closing(socket);
      for (let sent = 0; sent < 20_000 && !socket.destroyed; sent += together) {
        socket.write(repeated(together, each));
        await sleep(2);
      }
      await closed;
      expect(told.goaway).toBe(
        together === 100 ? constants.NGHTTP2_ENHANCE_YOUR_CALM : constants.NGHTTP2_INTERNAL_ERROR,
      );
    }
    expect((await raw(port, "2", health)).status).toBe(200);
  });

  test("not one that pings now and then, or opens and resets some streams", async () => {
    const connection = openHttp2(port);
    for (let i = 0; i < 200; i++) {
      if (i % 5 === 0) await new Promise((resolve) => connection.session.ping(resolve));
      const stream = connection.session.request({ ":method": "POST", ":path": path });
      stream.on("error", () => {});
      stream.close(constants.NGHTTP2_CANCEL);
    }
    expect((await connection.send(health)).status).toBe(200);
    expect(connection.goaway()).toBeUndefined();
    connection.close();
  });
});

describe("requests that are reset in the bytes that open them", async () => {
  const tls = await testPort([service], { database: port.database, secure: true });
  const reset = (id: number) => frame(frameType.reset, 0, id, uint32(constants.NGHTTP2_CANCEL));
  const resets = (count: number) =>
    Buffer.concat(Array.from({ length: count }, (_, i) => [post(2 * i + 1, path, {}), reset(2 * i + 1)]).flat());
  const ping = frame(frameType.ping, 0, 0, Buffer.alloc(8));

  /** Sends this over so many connections; returns the GOAWAYs of those that were closed, how many requests were begun, and the longest turn. */
  async function flood(target: typeof port, connectionCount: number, bytes: Buffer) {
    const connections = await Promise.all(Array.from({ length: connectionCount }, () => openFrames(target.url)));
    const other = openHttp2(target);
    expect((await other.send(health)).status).toBe(200);
    const linesBefore = target.lines.length;
    const turns = loopTurns();
    for (const { socket } of connections) socket.write(Buffer.concat([bytes, ping]));
    await expect.poll(() => connections.every(({ socket, told }) => socket.destroyed || told.pings > 0)).toBe(true);
    expect((await other.send(health)).status).toBe(200);
    const { ms: turnMs } = turns.longest();
    turns.stop();
    const closed = connections.filter(({ socket }) => socket.destroyed).map(({ told }) => told.goaway);
    for (const { socket } of connections) socket.destroy();
    other.close();
    return { closed, begun: target.lines.length - linesBefore - 1, turnMs };
  }

  const { NGHTTP2_INTERNAL_ERROR: byNode, NGHTTP2_ENHANCE_YOUR_CALM: calm } = constants;

  test("250 at once on a connection are taken, and 251 are not", async () => {
    expect(await flood(port, 1, resets(250))).toMatchObject({ closed: [], begun: 0 });
    expect((await flood(port, 1, resets(251))).closed).toEqual([byNode]);
  });

  test("a thousand a minute from an address are taken", async () => {
    const fresh = await testPort([service], { database: port.database, secure: true });
    expect((await flood(fresh, 4, resets(250))).closed).toEqual([]);
    expect((await flood(fresh, 2, resets(1))).closed).toEqual([calm, calm]);
  });

  test("2,500 a second of all clients together are taken where they share the address of a proxy", async () => {
    const fresh = await testPort([service], { database: port.database });
    expect((await flood(fresh, 10, resets(250))).closed).toEqual([]);
    const more = (await flood(fresh, 25, resets(250))).closed;
    expect(more.length).toBeGreaterThan(0);
    expect(new Set(more)).toEqual(new Set([calm]));
  });

  test("900 on each of 20 connections: these are closed, no other, and nobody waits long", async () => {
    const secure = await flood(tls, 20, resets(900));
    expect(secure.closed).toHaveLength(20);
    expect(secure.turnMs).toBeLessThan(turnMsMax);
    const plain = await flood(port, 20, resets(900));
    expect(plain.closed).toHaveLength(20);
    expect(plain.turnMs).toBeLessThan(turnMsMax);
    // One at most for each end of a read between a request and its reset.
    expect(secure.begun + plain.begun).toBeLessThan(40);
  });
});

describe("at most this many connections", () => {
  const open: { destroy(): void }[] = [];
  afterAll(() => {
    for (const socket of open) socket.destroy();
  });

  test.each(httpVersions)("those that ask nothing make way for others, HTTP/%s", async (version) => {
    const silent = await Promise.all(Array.from({ length: 40 }, () => openSocket(small.url)));
    open.push(...silent);
    for (let i = 0; i < 5; i++) expect((await raw(small, version, health)).status).toBe(200);
    expect(silent.filter((socket) => !socket.destroyed).length).toBeLessThanOrEqual(20);
  });

  test("also in the middle of a handshake, or before the first request over TLS", async () => {
    const { hostname, port: number } = new URL(secure.url);
    const silent = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const socket = connectTls({ host: hostname, port: Number(number), rejectUnauthorized: false });
        socket.on("error", () => {});
        await Promise.race([once(socket, "secureConnect"), closing(socket)]);
        return socket;
      }),
    );
    open.push(...silent);
    for (const version of httpVersions) expect((await raw(secure, version, health)).status).toBe(200);
  });

  test("those that have asked something stay, and a further one is closed", async () => {
    for (const socket of open.splice(0)) socket.destroy();
    await sleep(50);
    const busy = Array.from({ length: 20 }, () => openHttp2(small));
    for (const each of busy) expect((await each.send(health)).status).toBe(200);
    await expect(raw(small, "1.1", health)).rejects.toThrow();
    for (const each of busy) expect((await each.send(health)).status).toBe(200);
    for (const each of busy) each.close();
    await expect
      .poll(() =>
        raw(small, "1.1", health).then(
          (answer) => answer.status,
          () => 0,
        ),
      )
      .toBe(200);
  });
});
