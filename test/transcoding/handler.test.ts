import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { brotliDecompressSync, gunzipSync, gzipSync, inflateSync } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextKey, createContextValues, type HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BadRequestSchema, RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { reasonDetail } from "../support/reasons.ts";
import { type Library, type Seen, startLibrary } from "./library.ts";
import { send } from "./wire.ts";

let library: Library;
beforeAll(async () => {
  library = await startLibrary();
});
afterAll(() => library.close());

describe("answers", () => {
  test("hold every field in the order of declaration: zero values, [], {}, null for unset messages, 64 bits as strings", async () => {
    const { text } = await library.json("GET", "/v1/shelves/a/books/b%20c");
    expect(text).toBe(
      '{"name":"shelves/a/books/b c","title":"Title of shelves/a/books/b c","pages":"12","tags":[],' +
        '"published":null,"author":null,"extra":null,"shelf_mark":""}\n',
    );
  });

  test("leave out unset members of oneofs and unset optional scalars, and keep those that are set to zero", async () => {
    const { body } = await library.json("POST", "/v1/echo", { cInt64: "0", oString: "" });
    expect(body).toMatchObject({ cInt64: "0", oString: "" });
    for (const absent of ["cString", "choice", "oInt64", "oEnum", "o_string"]) expect(body).not.toHaveProperty(absent);
    expect(body.oMessage).toBeNull();
  });

  test("write times in Z with three decimals, six or nine when needed", async () => {
    for (const [given, written] of [
      ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.000Z"],
      ["2024-01-01T02:00:00.12+02:00", "2024-01-01T00:00:00.120Z"],
      ["2024-01-01T00:00:00.1234Z", "2024-01-01T00:00:00.123400Z"],
      ["2024-01-01T00:00:00.123456789Z", "2024-01-01T00:00:00.123456789Z"],
    ]) {
      const { body } = await library.json("POST", "/v1/echo", { timestamp: given });
      expect(body.timestamp).toBe(written);
    }
  });

  test("take plain objects of handlers, whatever they leave out", async () => {
    const own = await startLibrary({ impl: { getThing: () => ({}), echo: () => ({ rMessage: [{ fString: "x" }] }) } });
    expect((await own.json("GET", "/v1/things/a")).body).toEqual({ id: "" });
    const { body } = await own.json("POST", "/v1/echo", {});
    expect(body.rMessage[0]).toMatchObject({ fString: "x", rString: [], mStringString: {}, fInt64: "0", fBytes: "" });
    await own.close();
  });

  test("are compressed by Accept-Encoding above 1 KiB, with Content-Length", async () => {
    const path = "/v1/books?pageSize=50";
    const plain = await send(library.port, `GET ${path}`);
    expect(plain.headers["content-length"]).toBe(String(plain.bytes.length));
    expect(plain.headers.vary).toBe("accept-encoding");
    for (const [accepted, encoding, unpack] of [
      ["gzip", "gzip", gunzipSync],
      ["gzip, deflate, br", "br", brotliDecompressSync],
      ["deflate;q=0.5, gzip;q=0", "deflate", inflateSync],
      ["*", "br", brotliDecompressSync],
    ] as const) {
      const { headers, bytes } = await send(library.port, `GET ${path}`, { "accept-encoding": accepted });
      expect(headers["content-encoding"]).toBe(encoding);
      expect(headers["content-length"]).toBe(String(bytes.length));
      expect(unpack(bytes).toString()).toBe(plain.text);
    }
    for (const accepted of ["zstd", "gzip;q=0", "identity", "identity;q=1, gzip;q=0.5", ""]) {
      const { headers } = await send(library.port, `GET ${path}`, { "accept-encoding": accepted });
      expect(headers["content-encoding"]).toBeUndefined();
    }
    const small = await send(library.port, "GET /v1/things/a", { "accept-encoding": "gzip" });
    expect(small.headers["content-encoding"]).toBeUndefined();
  });

  test("keep what the handler says they vary by, above 1 KiB too", async () => {
    const own = await startLibrary({
      impl: {
        listBooks({ pageSize }: { pageSize: number }, { responseHeader }) {
          responseHeader.set("vary", "accept-language");
          return { books: Array.from({ length: pageSize }, () => ({})) };
        },
      },
    });
    const varies = async (count: number) => (await own.json("GET", `/v1/books?pageSize=${count}`)).headers.get("vary");
    expect(await varies(1)).toBe("accept-language");
    expect(await varies(50)).toBe("accept-language, accept-encoding");
    await own.close();
  });

  test("are an error where a Struct holds a number that JSON cannot", async () => {
    for (const extra of [{ a: Number.NaN }, { a: [{ b: Number.POSITIVE_INFINITY }] }]) {
      const own = await startLibrary({ impl: { getBook: () => ({ extra }), echo: () => ({ rStruct: [{}, extra] }) } });
      expect((await own.json("GET", "/v1/shelves/a/books/b")).status).toBe(500);
      expect((await own.json("POST", "/v1/echo", {})).status).toBe(500);
      expect(String(own.reported[0])).toContain("google.protobuf.Struct holds a number that JSON cannot");
      await own.close();
    }
  });

  test("pass google.api.HttpBody as it is, in and out", async () => {
    const bytes = Buffer.from([0, 255, 10, 123]);
    for (const path of ["/v1/raw", "/v1/uploads/x"]) {
      const reply = await send(library.port, `POST ${path}`, { "content-type": "image/x-none" }, bytes);
      expect(reply.status).toBe(200);
      expect(reply.headers["content-type"]).toBe("image/x-none");
      expect(reply.bytes).toEqual(bytes);
    }
    const packed = await send(library.port, "POST /v1/raw", { "content-encoding": "gzip" }, gzipSync(bytes));
    expect(packed.bytes).toEqual(bytes);
    expect(packed.headers["content-type"]).toBe("application/octet-stream");
  });
});

describe("errors", () => {
  const overrides: Record<string, (input: never, context: HandlerContext) => unknown> = {
    getThing({ id }: { id: string }, context) {
      context.responseHeader.set("x-seen", "yes");
      if (id === "bug") throw new TypeError("password=hunter2");
      if (id === "detail") {
        throw new ConnectError("no", Code.ResourceExhausted, { "retry-after": "7" }, [
          { desc: BadRequestSchema, value: { fieldViolations: [{ field: "a.b", description: "must be" }] } },
          { desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay: { seconds: 7n } }) },
        ]);
      }
      throw new ConnectError(`code ${id}`, Number(id) as Code);
    },
  };
  let failing: Library;
  beforeAll(async () => {
    failing = await startLibrary({ impl: overrides });
  });
  afterAll(() => failing.close());

  test("have the status of their code", async () => {
    const statuses = [499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401];
    for (const [i, status] of statuses.entries()) {
      const reply = await failing.json("GET", `/v1/things/${i + 1}`);
      expect(reply.status).toBe(status);
      expect(reply.body).toEqual({
        code: i + 1,
        message: `code ${i + 1}`,
        details: [{ ...reasonDetail(""), reason: expect.any(String) }],
      });
    }
  });

  test("that no one foresaw say nothing of themselves and are reported", async () => {
    const { status, text } = await failing.json("GET", "/v1/things/bug");
    expect(status).toBe(500);
    expect(text).toBe(
      `{"code":13,"message":"internal error","details":[${JSON.stringify(reasonDetail("INTERNAL"))}]}\n`,
    );
    expect(failing.reported.map(String)).toEqual(["TypeError: password=hunter2"]);
  });

  test("carry details with @type first, their metadata and the headers that the handler has set", async () => {
    const { status, headers, text } = await failing.json("GET", "/v1/things/detail");
    expect(status).toBe(429);
    expect(headers.get("retry-after")).toBe("7");
    expect(headers.get("x-seen")).toBe("yes");
    expect(text).toBe(
      '{"code":8,"message":"no","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":' +
        '[{"field":"a.b","description":"must be","reason":"","localizedMessage":null}]},' +
        '{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"},' +
        `${JSON.stringify(reasonDetail("OVERLOADED"))}]}\n`,
    );
  });
});

describe("admission", () => {
  const who = createContextKey("nobody");
  let guarded: Library;
  beforeAll(async () => {
    guarded = await startLibrary({
      async admit(method, header) {
        if (header.get("key") !== "good") throw new ConnectError(`no ${method.name}`, Code.Unauthenticated);
        return createContextValues().set(who, "somebody");
      },
    });
  });
  afterAll(() => guarded.close());

  test("comes after the route and before everything about the body", async () => {
    const sent = (line: string, headers = {}, body?: string) => send(guarded.port, line, headers, body);
    expect((await sent("GET /v1/nothing")).status).toBe(404);
    expect((await sent("PUT /v1/books")).status).toBe(501);
    expect((await sent("POST /v1/echo", { "content-type": "text/plain" }, "{")).status).toBe(401);
    expect((await sent("GET /v1/things/%ff")).status).toBe(401);
    expect((await sent("POST /v1/echo", { "content-length": "99999999" }, "")).status).toBe(401);
    expect((await sent("POST /v1/echo", { key: "good", "content-type": "text/plain" }, "{")).status).toBe(415);
    expect((await sent("POST /v1/echo", { key: "good" }, "{}")).status).toBe(200);
    expect(guarded.seen.at(-1)?.context.values.get(who)).toBe("somebody");
  });

  test("refuses while the body is still being sent", async () => {
    const socket = connect(guarded.port, "127.0.0.1");
    socket.write("POST /v1/echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n{");
    const [head] = (await once(socket, "data")) as [Buffer];
    expect(head.toString()).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
  });
});

describe("the call", () => {
  test("gets the request's headers without hop-by-hop ones, and may set the answer's", async () => {
    const own = await startLibrary({
      impl: {
        getThing(input, { responseHeader, requestHeader, requestMethod, url, service, method }) {
          responseHeader.set("x-a", "1");
          responseHeader.append("set-cookie", "a=1");
          responseHeader.append("set-cookie", "b=2");
          responseHeader.set("content-length", "3");
          responseHeader.set("connection", "close");
          expect([...requestHeader.keys()]).toEqual(expect.arrayContaining(["x-b", "user-agent"]));
          for (const name of ["connection", "te", "host"]) expect(requestHeader.has(name)).toBe(false);
          expect([requestMethod, url, service.name, method.name]).toEqual([
            "GET",
            "/v1/things/a",
            "LibraryService",
            "GetThing",
          ]);
          return input;
        },
      },
    });
    const reply = await send(own.port, "GET /v1/things/a", { "x-b": "2", te: "trailers", "user-agent": "u" });
    expect(reply.text).toBe('{"id":"a"}\n');
    expect(reply.headers).toMatchObject({ "x-a": "1", "set-cookie": ["a=1", "b=2"], "content-length": "11" });
    await own.close();
  });

  test("does not get the headers that Connection names", async () => {
    const headers = { connection: "close, X-Hop , x-other", "x-hop": "1", "X-Other": "2", "x-end": "3" };
    expect((await send(library.port, "GET /v1/things/a", headers)).status).toBe(200);
    const { requestHeader } = (library.seen.at(-1) as Seen).context;
    expect(["x-hop", "x-other", "x-end"].map((name) => requestHeader.get(name))).toEqual([null, null, "3"]);
    expect(["x-hop", "x-other", "x-end"].map((name) => requestHeader.has(name))).toEqual([false, false, true]);
  });

  const waits = {
    getThing: (_input: never, { signal }: HandlerContext) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  };

  test("ends with code 4 at the deadline of grpc-timeout or connect-timeout-ms, also when the handler does not listen", async () => {
    for (const getThing of [waits.getThing, () => new Promise(() => {})]) {
      const own = await startLibrary({ impl: { getThing } });
      for (const header of [{ "grpc-timeout": "30m" }, { "connect-timeout-ms": "30" }, { "grpc-timeout": "30000u" }]) {
        const reply = await own.json("GET", "/v1/things/a", undefined, header as never);
        expect(reply.status).toBe(504);
        expect(reply.body.code).toBe(4);
      }
      expect(own.seen.at(-1)?.context.signal.aborted).toBe(true);
      await own.close();
    }
  });

  test("has its deadline cut to the maximum, and the maximum when none is asked for", async () => {
    const own = await startLibrary({ impl: waits, deadlineMsMax: 40 });
    for (const headers of [{ "grpc-timeout": "99999999H" }, { "connect-timeout-ms": "9999999999" }, {}]) {
      const reply = await own.json("GET", "/v1/things/a", undefined, headers as never);
      expect(reply.status).toBe(504);
      expect(own.seen.at(-1)?.context.timeoutMs()).toBeLessThanOrEqual(40);
    }
    await own.close();
  });

  test("is refused with code 3 when the deadline is malformed", async () => {
    for (const headers of [
      { "grpc-timeout": "5" },
      { "grpc-timeout": "-5S" },
      { "grpc-timeout": "123456789S" },
      { "connect-timeout-ms": "1.5" },
      { "connect-timeout-ms": "" },
    ]) {
      const reply = await library.json("GET", "/v1/things/a", undefined, headers as never);
      expect(reply.status).toBe(400);
      expect(reply.body.code).toBe(3);
    }
  });

  test("is aborted when the client goes away, and when the server stops", async () => {
    const stopping = new AbortController();
    const aborted = Promise.withResolvers<unknown>();
    const own = await startLibrary({
      stopping: stopping.signal,
      impl: {
        getThing(_input, { signal }) {
          signal.addEventListener("abort", () => aborted.resolve(signal.reason));
          return new Promise(() => {});
        },
        getFile: (_input, { signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      },
    });
    const socket = connect(own.port, "127.0.0.1");
    socket.write("GET /v1/things/a HTTP/1.1\r\nhost: x\r\n\r\n");
    while (own.seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    socket.destroy();
    expect(((await aborted.promise) as ConnectError).code).toBe(Code.Canceled);

    const answer = own.json("GET", "/v1/files/a");
    while (own.seen.length === 1) await new Promise((resolve) => setTimeout(resolve, 5));
    stopping.abort(new ConnectError("stopping", Code.Unavailable));
    expect((await answer).status).toBe(503);
    await own.close();
  });

  test("tells those who still listen to its signal that it has ended, as over Connect", async () => {
    const told = Promise.withResolvers<unknown>();
    const own = await startLibrary({
      impl: {
        getThing(input, { signal }) {
          signal.addEventListener("abort", () => told.resolve(signal.reason));
          return input;
        },
      },
    });
    expect((await own.json("GET", "/v1/things/a")).status).toBe(200);
    expect(((await told.promise) as ConnectError).rawMessage).toBe("the call has ended");
    await own.close();
  });
});

test("unknown fields are skipped, checked for form alone, by a server that ignores them", async () => {
  const own = await startLibrary({ unknownFields: "ignore" });
  expect((await own.json("POST", "/v1/echo", '{"nope":{"a":[1,"x"]},"fInt32":3}')).body.fInt32).toBe(3);
  expect((await own.json("POST", "/v1/echo", '{"nope":{"a":[1,}}')).status).toBe(400);
  expect((await own.json("POST", "/v1/echo", '{"nope":{"a":1,"a":1}}')).status).toBe(200); // nothing is kept of it, its keys neither
  await own.close();
});

test("everything holds over HTTP/2 too", async () => {
  const own = await startLibrary({ http2: true });
  const session = connectHttp2(own.url);
  async function call(method: string, path: string, body?: string): Promise<{ status: number; text: string }> {
    const stream = session.request({ ":method": method, ":path": path }, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
    const [headers] = (await once(stream, "response")) as [Record<string, number>];
    return { status: headers[":status"] as number, text: Buffer.concat(await stream.toArray()).toString() };
  }
  expect(await call("GET", "/v1/things/a%2Fb")).toEqual({ status: 200, text: '{"id":"a/b"}\n' });
  expect((await call("POST", "/v1/echo", '{"fInt32":7}')).text).toContain('"fInt32":7');
  expect((await call("POST", "/v1/echo")).status).toBe(200);
  expect((await call("GET", "/v1/things/a", "{}")).status).toBe(400);
  expect((await call("GET", "/v1/things/a", "")).status).toBe(200);
  expect(await call("HEAD", "/v1/things/a")).toEqual({ status: 200, text: "" });
  expect((await call("OPTIONS", "/v1/things/a")).status).toBe(204);
  expect((await call("POST", "/v1/echo", `"${"x".repeat(70_000)}"`)).status).toBe(413);
  expect((await call("GET", "/v1/books:watch?count=2")).text.split("\n")).toHaveLength(3);
  session.close();
  await own.close();
});
