import { Agent, type IncomingMessage, request } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { brotliDecompressSync, gunzipSync, gzipSync, inflateSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cases, seed } from "../support/cases.ts";
import { type Library, startLibrary } from "./library.ts";

// A failure prints its seed.
const runs = cases(2000);
const atOnce = 32;

let library: Library;
const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
beforeAll(async () => {
  library = await startLibrary();
});
afterAll(async () => {
  agent.destroy();
  await library.close();
});

/** Numbers that a seed decides (mulberry32). */
function randomFrom(start: number) {
  let state = start;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number) => Math.floor(next() * n);
  const of = <T>(...choices: T[]): T => choices[below(choices.length)] as T;
  return { below, of, bytes: (n: number) => Buffer.from(Array.from({ length: n }, () => below(256))) };
}

type Random = ReturnType<typeof randomFrom>;

const samples = [
  '{"fInt64":"12","rString":["a","é"],"fMessage":{"fDouble":1.5e3},"mStringString":{"k":"v"}}',
  '{"timestamp":"2024-02-29T00:00:00Z","duration":"1.5s","any":{"@type":"type.googleapis.com/foreign.v1.Book","title":"t"}}',
  '{"value":{"a":[1,null,true,"\\u20ac\\ud83d\\ude00"]},"struct":{"x":{}},"fieldMask":"a,bC","wInt64":"7"}',
  '{"cString":"x","oMessage":{"and":[{"text":"a"},{"not":{"always":true}}]},"fBytes":"AQI=","fEnum":"COLOR_RED"}',
];
const targets = [
  "POST /v1/echo",
  "PUT /v1/echo/list",
  "PUT /v1/echo/value",
  "PUT /v1/shelves/s",
  "POST /v1/raw",
  "GET /v1/books?pageSize=3",
  "GET /v1/files/a/b",
  "GET /v1/things/a",
  "GET /v1/typed/1/2/true/0/AQ/1",
  "GET /v1/books:watch?count=2",
  "PATCH /v1/shelves/a/books/b?updateMask=title",
  "DELETE /v1/shelves/a/books/b",
  "HEAD /v1/books",
  "OPTIONS /v1/books",
  "PUT /v1/books",
  "GET /v1/echo?fInt32=1&rString=a&mStringString[k]=v&fMessage.fBool=true",
  "POST /v1/things/a:move",
  "PROPFIND /v1/books",
];
const tokens = [
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  '"',
  "\\",
  "\\u",
  "\\ud800",
  "null",
  "true",
  "1e999",
  "-",
  "0",
  "1.",
  "NaN",
  "\u0000",
  "\ud83d\ude00",
  '"__proto__":1,',
  '"constructor":{},',
  "9".repeat(400),
  "é",
  "\ufeff",
  '{"a":'.repeat(120),
  "[".repeat(300),
  "k".repeat(3000),
];
const urlTokens = [
  "%",
  "%ff",
  "%2F",
  "/",
  "//",
  ":",
  ":v",
  "?",
  "&",
  "=",
  "[",
  "]",
  "..",
  "+",
  "~",
  "%00",
  "a".repeat(500),
  ";",
  "@",
  "**",
];
const headerValues: [string, string[]][] = [
  [
    "content-type",
    ["application/json", "text/plain", "application/json;charset=x", ";", "application/x+json", 'a/b;c="'],
  ],
  ["content-encoding", ["gzip", "br", "deflate", "identity", "zstd", ",", ""]],
  ["accept-encoding", ["gzip", "br;q=x", "*;q=0", ",,;", "gzip;q=2"]],
  ["accept", ["text/event-stream", "*/*", ";"]],
  ["grpc-timeout", ["1S", "x", "0n", "99999999H"]],
  ["connect-timeout-ms", ["10000", "-1", "x", "0"]],
  ["x-anything", ["é", "\t", "a, b"]],
];

function mutated(text: string, parts: string[], { below, of }: Random): string {
  let out = text;
  for (let n = below(4); n > 0; n--) {
    const at = below(out.length + 1);
    const cut = below(5);
    out = of(
      () => out.slice(0, at) + of(...parts) + out.slice(at),
      () => out.slice(0, at) + out.slice(at + cut),
      () => out.slice(0, at) + out.slice(at, at + 20).repeat(2) + out.slice(at + 20),
      () => out.slice(0, at) + of(...parts) + out.slice(at + cut),
    )();
  }
  return out;
}

function fuzzed(random: Random) {
  const { below, of, bytes } = random;
  const [method = "", path = ""] = of(...targets).split(" ");
  // What a client may send as a target at all: visible ASCII.
  const target = `/${(below(3) === 0 ? mutated(path, urlTokens, random) : path).slice(1).replace(/[^\x21-\x7e]/g, "x")}`;
  const headers: Record<string, string> = {};
  for (const [name, values] of headerValues) if (below(12) === 0) headers[name] = of(...values);
  let body: Buffer | undefined;
  if (!/^(GET|HEAD|OPTIONS|DELETE)$/.test(method) || below(20) === 0) {
    body = of(
      () => Buffer.from(mutated(of(...samples), tokens, random)),
      () => Buffer.from(mutated(of(...samples), tokens, random)),
      () => Buffer.from(of(...samples)),
      () => bytes(below(200)),
      () => gzipSync(mutated(of(...samples), tokens, random)),
      () => Buffer.alloc(below(90_000), 32),
    )();
    if (below(3) === 0) headers["transfer-encoding"] = "chunked";
  }
  return { method, target, headers, body };
}

type Fuzzed = ReturnType<typeof fuzzed>;

const unpackers: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
  deflate: inflateSync,
};

function sendOne(one: Fuzzed): Promise<{ response: IncomingMessage; text: string }> {
  const { method, target, headers, body } = one;
  const { promise, resolve, reject } = Promise.withResolvers<{ response: IncomingMessage; text: string }>();
  const outgoing = request(
    { host: "127.0.0.1", port: library.port, method, path: target, headers, agent },
    (response) => {
      const head = one.method === "HEAD";
      const unpack = (!head && unpackers[response.headers["content-encoding"] ?? ""]) || ((bytes: Buffer) => bytes);
      response
        .toArray()
        .then((chunks) => resolve({ response, text: unpack(Buffer.concat(chunks)).toString() }))
        .catch(reject);
    },
  );
  outgoing.on("error", reject);
  // Node frames the body of a GET by nothing at all unless a header says so.
  if (body !== undefined && headers["transfer-encoding"] === undefined)
    outgoing.setHeader("content-length", body.length);
  outgoing.end(body);
  return promise;
}

async function check(one: Fuzzed): Promise<void> {
  const what = () => `seed ${seed}: ${JSON.stringify({ ...one, body: one.body?.toString("latin1").slice(0, 500) })}`;
  try {
    const { response, text } = await sendOne(one);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return;
    expect(status, what()).toBeGreaterThanOrEqual(400);
    if (one.method === "HEAD") return;
    const error = JSON.parse(text);
    expect(Object.keys(error), what()).toEqual(["code", "message", "details"]);
    expect(error.code, what()).not.toBe(13);
  } catch (error) {
    // A body that was refused in the middle may meet a closed connection; the answer is lost, not the server.
    const lost = (error as NodeJS.ErrnoException).code;
    if ((lost === "ECONNRESET" || lost === "EPIPE") && (one.body?.length ?? 0) > 60_000) return;
    throw new Error(what(), { cause: error });
  }
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

test(`${runs} requests of all kinds get a 2xx or an error in our form, and leave no memory behind`, {
  timeout: 3_600_000,
}, async () => {
  const random = randomFrom(seed);
  let left = runs;
  let warm: number | undefined;
  async function worker(): Promise<void> {
    while (left-- > 0) {
      await check(fuzzed(random));
      library.seen.length = 0;
      if (left === Math.floor(runs * 0.7)) warm = heapBytes();
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker));
  expect(library.reported, `seed ${seed}`).toEqual([]);
  const grown = heapBytes() - (warm ?? 0);
  expect(grown, `seed ${seed}: bytes of heap grown`).toBeLessThan(16 * 1024 * 1024);
});
