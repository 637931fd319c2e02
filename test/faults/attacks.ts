import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { envelope } from "../support/clients.ts";
import {
  closing,
  flag,
  frame,
  frameType,
  headerBlock,
  openFrames,
  openSocket,
  post,
  uint32,
} from "../support/frames.ts";

/** Where bad requests go; `key` is a good one, because what has none is not read at all. */
export interface Victim {
  url: string;
  key: string;
}

/** What came of bad requests. */
export interface Damage {
  requests: number;
  /** Answers over HTTP/1.1, whole. */
  answers: string[];
}

/** One way to be bad on a connection of its own. */
export type Attack = (victim: Victim) => Promise<Damage>;

const MiB = 1024 * 1024;
const json = "/v1/data-receiver/events";
const rpc = "/belfry.receiver.v1.DataReceiverService/PutEvents";
const search = "/v1/events:search";
const bomb = gzipSync(Buffer.alloc(100 * MiB));
// Just small enough to be taken whole, and no message.
const quietBomb = gzipSync(Buffer.alloc(60 * MiB, 32));

const head = (path: string, headers: Record<string, string>) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("")}\r\n`;

const jsonHeaders = (key: string) => ({ "service-api-key": key, "content-type": "application/json" });
const grpcHeaders = (key: string) => ({ "service-api-key": key, "content-type": "application/grpc", te: "trailers" });

/** Whoever waits for an answer goes this long after it has begun to come. */
const answerMs = 300;

/** Sends text over HTTP/1.1, stays for a while, or until it is answered, and goes: in order, or with a reset. */
async function over1({ url }: Victim, pieces: (string | Uint8Array)[], stayMs: number, reset = false): Promise<Damage> {
  const socket = await openSocket(url);
  const { promise: answered, resolve } = Promise.withResolvers<void>();
  let answer = "";
  socket.on("data", (piece) => {
    answer += piece.toString("latin1");
    resolve();
  });
  const closed = closing(socket);
  for (const piece of pieces) socket.write(piece);
  await Promise.race([closed, sleep(stayMs), answered.then(() => sleep(answerMs))]);
  leave(socket, reset);
  await closed;
  return { requests: 1, answers: answer === "" ? [] : [answer] };
}

/** Sends frames over HTTP/2, stays for a while, and goes. */
async function over2({ url }: Victim, frames: Uint8Array, requests: number, stayMs: number): Promise<Damage> {
  const { socket } = await openFrames(url);
  const closed = closing(socket);
  socket.write(frames);
  await Promise.race([closed, sleep(stayMs)]);
  leave(socket, true);
  await closed;
  return { requests, answers: [] };
}

function leave(socket: Socket, reset: boolean) {
  if (reset && !socket.destroyed) socket.resetAndDestroy();
  else socket.destroy();
}

const repeated = (count: number, make: (i: number) => Uint8Array) =>
  Buffer.concat(Array.from({ length: count }, (_, i) => make(i)));
const stream = (i: number) => 2 * i + 1;
const data = (id: number, bytes: Uint8Array, last = false) =>
  frame(frameType.data, last ? flag.endStream : 0, id, bytes);

/** All of them, by name. */
export const attacks: Record<string, Attack> = {
  "HTTP/1.1: half a head": (victim) => over1(victim, ["POST /v1/events HTTP/1.1\r\nHost: x\r\nx-a"], 300),
  "HTTP/1.1: nothing": (victim) => over1(victim, [], 100, true),
  "HTTP/1.1: rubbish": (victim) => over1(victim, [Buffer.alloc(300, "\x00\xff\r\n")], 500),
  "HTTP/1.1: a head without end": (victim) => over1(victim, [`GET / HTTP/1.1\r\nx: ${"y".repeat(30_000)}`], 500),
  "HTTP/1.1: half a body": (victim) =>
    over1(victim, [head(json, { ...jsonHeaders(victim.key), "content-length": "5000" }), '{"events":['], 100, true),
  "HTTP/1.1: half a body without a key": (victim) =>
    over1(victim, [head(rpc, { "content-length": "5000", "content-type": "application/proto" }), "half"], 300),
  "HTTP/1.1: 100 MB announced": (victim) =>
    over1(victim, [head(json, { ...jsonHeaders(victim.key), "content-length": "100000000" }), '{"events":['], 400),
  "HTTP/1.1: 100 MB announced over Connect": (victim) =>
    over1(victim, [head(rpc, { ...jsonHeaders(victim.key), "content-length": "100000000" }), '{"events":['], 100, true),
  "HTTP/1.1: broken chunks": (victim) =>
    over1(
      victim,
      [head(json, { ...jsonHeaders(victim.key), "transfer-encoding": "chunked" }), "5\r\n{\r\nzz\r\n"],
      500,
    ),
  "HTTP/1.1: a bomb": (victim) => {
    const headers = { ...jsonHeaders(victim.key), "content-encoding": "gzip", "content-length": String(bomb.length) };
    return over1(victim, [head(json, headers), bomb], 5000);
  },
  "HTTP/1.1: a bomb that fits": (victim) => {
    const headers = {
      ...jsonHeaders(victim.key),
      "content-encoding": "gzip",
      "content-length": String(quietBomb.length),
    };
    return over1(victim, [head(rpc, headers), quietBomb], 5000);
  },
  "HTTP/1.1: many at once, and a reset": (victim) =>
    over1(
      victim,
      [repeated(20, () => Buffer.from(`${head(search, { ...jsonHeaders(victim.key), "content-length": "2" })}{}`))],
      20,
      true,
    ).then(
      // What was answered of them is good.
      () => ({ requests: 20, answers: [] }),
    ),
  "HTTP/2: rapid resets": (victim) =>
    over2(
      victim,
      repeated(200, (i) =>
        Buffer.concat([
          post(stream(i), search, jsonHeaders(victim.key)),
          frame(frameType.reset, 0, stream(i), uint32(8)),
        ]),
      ),
      200,
      100,
    ),
  "HTTP/2: half bodies": (victim) =>
    over2(
      victim,
      repeated(100, (i) =>
        Buffer.concat([
          post(stream(i), rpc, grpcHeaders(victim.key)),
          data(stream(i), envelope(Buffer.alloc(500)).subarray(0, 99)),
        ]),
      ),
      100,
      150,
    ),
  "HTTP/2: half bodies without a key": (victim) =>
    over2(
      victim,
      repeated(100, (i) => Buffer.concat([post(stream(i), json, {}), data(stream(i), Buffer.from('{"events":['))])),
      100,
      150,
    ),
  "HTTP/2: messages of 100 MB announced": (victim) =>
    over2(
      victim,
      repeated(50, (i) =>
        Buffer.concat([
          post(stream(i), rpc, grpcHeaders(victim.key)),
          data(stream(i), Buffer.from([0, 6, 0, 0, 0, 1])),
        ]),
      ),
      50,
      150,
    ),
  "HTTP/2: a bomb": async (victim) => {
    // In pieces that the windows let through.
    const message = envelope(bomb, 1);
    const { socket } = await openFrames(victim.url);
    const closed = closing(socket);
    socket.write(post(1, rpc, { ...grpcHeaders(victim.key), "grpc-encoding": "gzip" }));
    for (let from = 0; from < message.length && !socket.destroyed; from += 16_000) {
      socket.write(data(1, message.subarray(from, from + 16_000), from + 16_000 >= message.length));
    }
    await Promise.race([closed, sleep(1000)]);
    socket.destroy();
    return { requests: 1, answers: [] };
  },
  "HTTP/2: a flood of SETTINGS": (victim) =>
    over2(
      victim,
      repeated(12_000, () => frame(frameType.settings, 0, 0)),
      1,
      1000,
    ),
  "HTTP/2: a flood of PINGs": (victim) =>
    over2(
      victim,
      repeated(12_000, () => frame(frameType.ping, 0, 0, Buffer.alloc(8))),
      1,
      1000,
    ),
  "HTTP/2: a head without end": (victim) =>
    over2(
      victim,
      Buffer.concat([
        post(1, json, {}, 0),
        repeated(100, () => frame(frameType.continuation, 0, 1, headerBlock({ "x-more": "y".repeat(100) }))),
      ]),
      1,
      300,
    ),
  "HTTP/2: large heads": (victim) =>
    over2(
      victim,
      repeated(20, (i) =>
        post(stream(i), json, Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`x-${n}`, "y".repeat(120)]))),
      ),
      20,
      300,
    ),
  "HTTP/2: empty DATA": (victim) =>
    over2(
      victim,
      Buffer.concat([post(1, json, jsonHeaders(victim.key)), repeated(1000, () => data(1, Buffer.alloc(0)))]),
      1,
      200,
    ),
  "HTTP/2: rubbish": (victim) => over2(victim, Buffer.alloc(500, 0xff), 1, 300),
  "HTTP/2: too much credit": (victim) =>
    over2(
      victim,
      repeated(3, () => frame(frameType.windowUpdate, 0, 0, uint32(0x7fffffff))),
      1,
      300,
    ),
};

/** What is wrong with answers to bad requests: they must be errors in our form, and nothing else. */
export function misshapen(answers: readonly string[]): string[] {
  return answers.filter((answer) => {
    const [start = "", body = ""] = answer.split("\r\n\r\n");
    if (!/^HTTP\/1\.1 (4\d\d|503|504) /.test(start)) return true;
    try {
      const { code, message } = JSON.parse(body);
      return code === undefined || typeof message !== "string";
    } catch {
      return true;
    }
  });
}
