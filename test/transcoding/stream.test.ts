import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reasonDetail } from "../support/reasons.ts";
import { type Library, startLibrary } from "./library.ts";
import { send } from "./wire.ts";

let library: Library;
beforeAll(async () => {
  library = await startLibrary();
});
afterAll(() => library.close());

const get = (path: string, headers = {}) => send(library.port, `GET ${path}`, headers);
const events = { accept: "text/event-stream" };
const records = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("a server stream", () => {
  test("is one JSON record a line", async () => {
    const { status, headers, text } = await get("/v1/books:watch?count=3");
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("application/x-ndjson");
    expect(records(text).map(({ result }) => result.name)).toEqual(["0", "1", "2"]);
    expect(text.endsWith("}\n")).toBe(true);
  });

  test("is server-sent events when asked for, with an end event", async () => {
    const { headers, text } = await get("/v1/books:watch?count=2", events);
    expect(headers["content-type"]).toBe("text/event-stream");
    expect(text).toMatch(/^data: \{"result":\{"name":"0".*\}\n\ndata: \{"result":.*\}\n\nevent: end\ndata: \{\}\n\n$/);
  });

  test("without messages is an empty body", async () => {
    const { status, text } = await get("/v1/books:watch?count=0");
    expect([status, text]).toEqual([200, ""]);
    expect((await get("/v1/books:watch", events)).text).toBe("event: end\ndata: {}\n\n");
  });

  test("carries an error before the first message as a real status", async () => {
    const { status, headers, text } = await get("/v1/books:watch?count=-1");
    expect(status).toBe(404);
    expect(headers["content-type"]).toBe("application/json");
    expect(JSON.parse(text)).toEqual({ code: 5, message: "none", details: [reasonDetail("RESOURCE_NOT_FOUND")] });
    expect((await get("/v1/books:watch?count=x")).status).toBe(400);
  });

  test("carries an error in mid-stream as its last record", async () => {
    const { status, text } = await get("/v1/books:watch?count=3&failAfter=2");
    expect(status).toBe(200);
    expect(records(text).at(-1)).toEqual({
      error: { code: 10, message: "torn", details: [reasonDetail("COLLISION")] },
    });
    expect(records(text)).toHaveLength(3);
    const sse = await get("/v1/books:watch?count=3&failAfter=1", events);
    expect(sse.text).toMatch(/\n\nevent: error\ndata: \{"error":\{"code":10,.*\}\}\n\n$/);
    expect(sse.text).not.toContain("event: end");
  });

  test("of google.api.HttpBody passes the bytes", async () => {
    const { headers, text } = await get("/v1/download?count=2");
    expect(headers["content-type"]).toBe("text/plain");
    expect(text).toBe("part 0\npart 1\n");
  });

  test("that breaks where no record can say so is reset", async () => {
    const own = await startLibrary({
      impl: {
        async *download() {
          yield { contentType: "text/plain", data: Buffer.from("a") };
          throw new ConnectError("torn", Code.Aborted);
        },
      },
    });
    await expect(send(own.port, "GET /v1/download")).rejects.toThrow(/aborted|hang up|reset/);
    await own.close();
  });

  test("that breaks over HTTP/2 where no record can say so is reset with an error code", async () => {
    const own = await startLibrary({
      http2: true,
      impl: {
        async *download() {
          yield { contentType: "text/plain", data: Buffer.from("a") };
          throw new ConnectError("torn", Code.Aborted);
        },
      },
    });
    const session = connectHttp2(own.url);
    const stream = session.request({ ":path": "/v1/download" });
    const failed = Promise.withResolvers<Error>();
    stream.on("error", failed.resolve).on("end", () => failed.resolve(new Error("it looks whole")));
    stream.resume();
    expect((await failed.promise).message).toContain("NGHTTP2_INTERNAL_ERROR");
    expect(stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
    session.destroy();
    await own.close();
  });

  test("answers HEAD with the status and the headers of GET", async () => {
    for (const [path, accept] of [
      ["/v1/books:watch?count=2", "*/*"],
      ["/v1/books:watch?count=2", "text/event-stream"],
      ["/v1/download?count=2", "*/*"],
    ] as const) {
      const [head, whole] = [await send(library.port, `HEAD ${path}`, { accept }), await get(path, { accept })];
      expect([head.status, head.text]).toEqual([200, ""]);
      for (const name of ["content-type", "cache-control"]) {
        expect(head.headers[name], path).toBe(whole.headers[name]);
        expect(head.headers[name], path).toBeDefined();
      }
    }
    expect((await send(library.port, "HEAD /v1/books:watch?count=-1")).status).toBe(404);
  });

  test("whose first message cannot be written is an error with its status", async () => {
    const own = await startLibrary({
      impl: {
        async *watch() {
          yield { extra: { nested: [Number.NaN] } };
        },
      },
    });
    for (const accept of ["*/*", "text/event-stream"]) {
      const reply = await send(own.port, "GET /v1/books:watch", { accept });
      expect([reply.status, JSON.parse(reply.text)]).toEqual([
        500,
        { code: 13, message: "internal error", details: [reasonDetail("INTERNAL")] },
      ]);
    }
    await own.close();
  });

  test("returns a generator that ignores its signal when its client leaves before the first message", async () => {
    const called = Promise.withResolvers<void>();
    const first = Promise.withResolvers<void>();
    const returned = Promise.withResolvers<string>();
    const own = await startLibrary({
      impl: {
        async *watch() {
          try {
            called.resolve();
            await first.promise;
            yield { name: "too late" };
          } finally {
            returned.resolve("returned");
          }
        },
      },
    });
    const socket = connect(own.port, "127.0.0.1");
    socket.write("GET /v1/books:watch HTTP/1.1\r\nhost: x\r\n\r\n");
    await called.promise;
    const signal = own.seen.at(-1)?.context.signal as AbortSignal;
    socket.destroy();
    if (!signal.aborted) await once(signal, "abort");
    first.resolve();
    expect(await returned.promise).toBe("returned");
    await own.close();
  });

  test("sends its head and each message at once, and stops its handler when the client goes away", async () => {
    const stopped = Promise.withResolvers<string>();
    const next = Promise.withResolvers<void>();
    const own = await startLibrary({
      impl: {
        async *watch(_input, { signal }) {
          try {
            yield { name: "first" };
            await Promise.race([next.promise, once(signal, "abort")]);
            yield { name: "second" };
          } finally {
            stopped.resolve("returned");
          }
        },
      },
    });
    const socket = connect(own.port, "127.0.0.1");
    socket.write("GET /v1/books:watch HTTP/1.1\r\nhost: x\r\n\r\n");
    let text = "";
    while (!text.includes('"first"')) text += String((await once(socket, "data"))[0]);
    socket.destroy();
    expect(await stopped.promise).toBe("returned");
    await own.close();
  });

  test("ends at its deadline and when the server stops, also when its handler hangs", async () => {
    const stopping = new AbortController();
    const own = await startLibrary({
      stopping: stopping.signal,
      impl: {
        async *watch() {
          yield { name: "first" };
          await new Promise(() => {});
        },
      },
    });
    const late = await send(own.port, "GET /v1/books:watch", { "grpc-timeout": "50m" });
    expect(records(late.text).at(-1)).toMatchObject({ error: { code: 4 } });
    const stopped = send(own.port, "GET /v1/books:watch");
    setTimeout(() => stopping.abort(new ConnectError("stopping", Code.Unavailable)), 50);
    expect(records((await stopped).text).at(-1)).toMatchObject({ error: { code: 14, message: "stopping" } });
    await own.close();
  });

  test("waits for a slow reader instead of piling up messages", async () => {
    let made = 0;
    const own = await startLibrary({
      impl: {
        async *watch() {
          for (; made < 20_000; made++) yield { name: "x".repeat(10_000) };
        },
      },
    });
    const socket = connect(own.port, "127.0.0.1");
    socket.pause();
    socket.write("GET /v1/books:watch HTTP/1.1\r\nhost: x\r\n\r\n");
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(made).toBeLessThan(10_000);
    socket.destroy();
    await own.close();
  });
});
