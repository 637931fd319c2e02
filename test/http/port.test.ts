import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { StartError } from "../../src/db/start-error.ts";
import { certificate } from "../../src/http/certificate.ts";
import { version } from "../../src/version.ts";
import { codeOf, envelope, httpVersions, openHttp2, protocols, raw, rawHttp1, transport } from "../support/clients.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { served, testPort } from "../support/port.ts";
import { reasonDetail } from "../support/reasons.ts";

const service = served(DataReceiverService, {
  putEvents: ({ events }) => ({
    succeeded: events.length,
    failedEvents: events.length < 100 ? [] : events.map(({ name }) => ({ event: { name }, error: "ü" })),
  }),
  async putEvent(requests) {
    let succeeded = 0;
    for await (const _ of requests) succeeded += 1;
    return { succeeded };
  },
});
const database = await testDatabase();
let ready = true;
const origin = "https://app.example.com";
const plain = await testPort([service], {
  database,
  notReady: () => (ready ? undefined : "the database is away"),
  settings: { corsOrigins: [origin] },
});
const secure = await testPort([service], { database, secure: true });
const path = "/belfry.receiver.v1.DataReceiverService/PutEvents";

describe.each(Object.entries({ plain, TLS: secure }))("%s", (_name, port) => {
  describe.each(protocols)("%s", (protocol) => {
    test.each(protocol === "grpc" ? (["2"] as const) : httpVersions)("calls over HTTP/%s", async (version) => {
      const headers = { "service-api-key": (await port.key()).text };
      const client = createClient(DataReceiverService, transport(port, protocol, headers, version));
      expect(await client.putEvents({ events: [{}, {}] })).toMatchObject({ succeeded: 2 });
      async function* three() {
        for (let i = 0; i < 3; i += 1) yield {};
      }
      expect(await client.putEvent(three())).toMatchObject({ succeeded: 3 });
    });
  });

  test("a large answer is the same over all protocols, compressed or not", async () => {
    const headers = { "service-api-key": (await port.key()).text };
    const events = Array.from({ length: 3000 }, (_, i) => ({ name: `event ${i}` }));
    for (const protocol of protocols) {
      const client = createClient(DataReceiverService, transport(port, protocol, headers));
      const { succeeded, failedEvents } = await client.putEvents({ events });
      expect(succeeded, protocol).toBe(3000);
      expect(
        failedEvents.map(({ event }) => event?.name),
        protocol,
      ).toEqual(events.map(({ name }) => name));
    }
    const json = Buffer.from(JSON.stringify({ events }));
    const frame = envelope(json);
    for (const [type, body] of Object.entries({
      "application/json": json,
      "application/grpc+json": frame,
      "application/grpc-web+json": frame,
    })) {
      for (const packed of [
        {} as Record<string, string>,
        { "accept-encoding": "gzip", "grpc-accept-encoding": "gzip" },
      ]) {
        const request = {
          path,
          headers: { ...headers, "content-type": type, te: "trailers", ...packed },
          body: [body],
        };
        const answer = await raw(port, "2", request);
        expect(answer.status, type).toBe(200);
        const framed = type !== "application/json";
        const bytes = framed ? answer.body.subarray(5, 5 + answer.body.readUInt32BE(1)) : answer.body;
        const isPacked = framed ? answer.body[0] === 1 : answer.headers["content-encoding"] === "gzip";
        expect(isPacked, type).toBe("accept-encoding" in packed);
        const { failedEvents } = JSON.parse((isPacked ? gunzipSync(bytes) : bytes).toString());
        expect(failedEvents, type).toHaveLength(3000);
        expect(failedEvents[2999], type).toEqual({ event: { name: "event 2999" }, error: "ü" });
      }
    }
  });

  describe.each(httpVersions)("HTTP/%s", (version) => {
    test("an unknown path is 404 in our form", async () => {
      for (const method of ["GET", "POST", "PROPFIND"]) {
        expect(await raw(port, version, { method, path: "/v1/nothing" }), method).toMatchObject({
          status: 404,
          headers: { "content-type": "application/json" },
        });
        const answer = await raw(port, version, { method, path: "/nothing?key=secret" });
        expect(answer.headers["content-type"]).toMatch(/^application\/json/);
        expect({ status: answer.status, body: JSON.parse(answer.body.toString()) }).toEqual({
          status: 404,
          body: { code: 5, message: "there is nothing at /nothing", details: [reasonDetail("PATH_NOT_FOUND")] },
        });
      }
    });

    test("a malformed escape is 400 in our form", async () => {
      const answer = await raw(port, version, { method: "GET", path: "/nothing/%zz" });
      expect(answer).toMatchObject({ status: 400, headers: { "content-type": "application/json" } });
      expect(JSON.parse(answer.body.toString())).toMatchObject({
        code: 3,
        details: [reasonDetail("MALFORMED_REQUEST")],
      });
    });

    test("another method than POST is 405, and says which", async () => {
      const answer = await raw(port, version, { method: "PUT", path });
      expect(answer).toMatchObject({ status: 405, headers: { allow: "POST, OPTIONS" } });
      expect(JSON.parse(answer.body.toString())).toMatchObject({
        code: 12,
        details: [reasonDetail("METHOD_NOT_ALLOWED")],
      });
    });

    test("OPTIONS says the methods", async () => {
      expect(await raw(port, version, { method: "OPTIONS", path })).toMatchObject({
        status: 204,
        headers: { allow: "POST, OPTIONS" },
      });
    });

    test("a request id is made, or the caller's own is echoed when it is plain", async () => {
      const own = await raw(port, version, { method: "GET", path: "/healthz", headers: { "x-request-id": "mine-1" } });
      expect(own.headers["x-request-id"]).toBe("mine-1");
      const made = [];
      for (const id of ["", "a b", "x".repeat(65), 'mine","admin":"yes']) {
        const answer = await raw(port, version, { method: "GET", path: "/healthz", headers: { "x-request-id": id } });
        made.push(answer.headers["x-request-id"]);
      }
      expect(made.every((id) => /^[0-9a-f]{12}-[0-9a-z]+$/.test(String(id)))).toBe(true);
      expect(new Set(made).size).toBe(made.length);
    });
  });
});

describe("HTTP/2", () => {
  test("an expectation that no one knows is 417", async () => {
    const answer = await raw(plain, "2", { path: "/healthz", method: "GET", headers: { expect: "tea" } });
    expect(answer).toMatchObject({ status: 417 });
  });

  test("CONNECT is 405", async () => {
    const { session, close } = openHttp2(plain);
    const stream = session.request({ ":method": "CONNECT", ":authority": "example.com:443" });
    const [headers] = await once(stream, "response");
    close();
    expect(headers[":status"]).toBe(405);
  });

  test("a client that waits for 100 Continue is told to go on", async () => {
    const { session, close } = openHttp2(plain);
    const headers = { "service-api-key": (await plain.key()).text, "content-type": "application/json" };
    const stream = session.request({ ":method": "POST", ":path": path, ...headers, expect: "100-continue" });
    await once(stream, "continue");
    stream.end("{}");
    const [answer] = await once(stream, "response");
    close();
    expect(answer[":status"]).toBe(200);
  });
});

describe("what is no HTTP", () => {
  test.each([
    ["rubbish", "rubbish\r\n\r\n", 400],
    ["a space in a header's name", "GET / HTTP/1.1\r\nHost: x\r\na b: c\r\n\r\n", 400],
    ["no Host header", "GET / HTTP/1.1\r\n\r\n", 400],
    ["two Host headers", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400],
    ["two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400],
    ["length and chunks", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400],
    ["an unknown expectation", "GET / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n", 417],
    ["headers without end", `GET / HTTP/1.1\r\nHost: x\r\nx: ${"y".repeat(20_000)}`, 431],
  ])("%s is answered in our form, and the connection closes", async (_what, text, status) => {
    const socket = connect(plain.address.port, "127.0.0.1");
    socket.write(text);
    let answer = "";
    socket.on("data", (piece) => {
      answer += piece;
    });
    await once(socket, "close");
    const [head = "", body = ""] = answer.split("\r\n\r\n");
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(head.toLowerCase()).toContain("content-type: application/json");
    expect(JSON.parse(body)).toMatchObject({
      code: expect.any(Number),
      message: expect.any(String),
      details: [{ domain: "belfry" }],
    });
  });
});

test("a target in absolute form, as proxies are sent, is the path in it", async () => {
  const socket = connect(plain.address.port, "127.0.0.1");
  const first = [
    "http://x/healthz",
    "HTTP://x.example:80/nothing?y",
    "http://x/v1/nothing",
    `http://x${path}`,
    "http://x",
  ];
  for (const target of first) socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
  socket.write("GET http://x?y HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  let answers = "";
  socket.on("data", (piece) => {
    answers += piece;
  });
  await once(socket, "close");
  const said = [...answers.matchAll(/HTTP\/1.1 (\d+)|"message":"([^"]*)"/g)].map(
    ([, status, message]) => status ?? message,
  );
  const nothing = (at: string) => ["404", `there is nothing at ${at}`];
  expect(said.slice(0, 5)).toEqual(["200", ...nothing("/nothing"), ...nothing("/v1/nothing")]);
  expect(said.slice(-4)).toEqual([...nothing("/"), ...nothing("/")]);
});

describe("health", () => {
  test("/healthz says that the process lives, /readyz that it can serve", async () => {
    const get = async (at: string) => (await raw(plain, "1.1", { method: "GET", path: at })).status;
    expect([await get("/healthz"), await get("/readyz")]).toEqual([200, 200]);
    ready = false;
    expect([await get("/healthz"), await get("/readyz")]).toEqual([200, 503]);
    ready = true;
    const { body } = await raw(plain, "1.1", { method: "GET", path: "/healthz" });
    expect(JSON.parse(`${body}`)).toEqual({ status: "alive", version });
  });
});

describe("pages of other origins", () => {
  const preflight = (from: string) =>
    rawHttp1(plain, {
      method: "OPTIONS",
      path,
      headers: {
        origin: from,
        "access-control-request-method": "POST",
        "access-control-request-headers": "service-api-key",
      },
    });

  test("a configured one may call over Connect and gRPC-Web", async () => {
    const { status, headers } = await preflight(origin);
    expect(status).toBe(204);
    expect(headers["access-control-allow-origin"]).toBe(origin);
    const allowed = String(headers["access-control-allow-headers"]).split(", ");
    for (const name of [
      "service-api-key",
      "content-type",
      "connect-protocol-version",
      "connect-timeout-ms",
      "x-grpc-web",
      "x-user-agent",
      "grpc-timeout",
    ]) {
      expect(allowed).toContain(name);
    }
    for (const type of ["application/json", "application/grpc-web+proto"]) {
      const answer = await rawHttp1(plain, { path, headers: { origin, "content-type": type }, body: [] });
      expect(answer.headers["access-control-allow-origin"]).toBe(origin);
      const exposed = String(answer.headers["access-control-expose-headers"]).split(", ");
      for (const name of ["grpc-status", "grpc-message", "grpc-status-details-bin", "x-request-id", "retry-after"]) {
        expect(exposed).toContain(name);
      }
    }
  });

  test("another one gets no permission", async () => {
    expect((await preflight("https://evil.example.com")).headers["access-control-allow-origin"]).toBeUndefined();
  });

  test("without configuration no one gets any", async () => {
    const answer = await raw(secure, "1.1", {
      path,
      headers: { origin, "content-type": "application/json" },
      body: [],
    });
    expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
  });
});

describe("the log", () => {
  test("holds one line for a call, with who called and how it ended", async () => {
    const { text, clientId } = await plain.key();
    const headers = { "content-type": "application/json", "service-api-key": text };
    const answer = await raw(plain, "1.1", { path, headers, body: [Buffer.from("{}")] });
    const id = String(answer.headers["x-request-id"]);
    expect(await plain.lineOf(id)).toMatchObject({
      requestId: id,
      rpc: "belfry.receiver.v1.DataReceiverService/PutEvents",
      status: 200,
      code: "OK",
      client: clientId,
      tenant: plain.tenantId,
      ms: expect.any(Number),
    });
    expect(plain.lines.filter((line) => line.requestId === id)).toHaveLength(1);
  });

  test.each([
    ["gRPC", "application/grpc"],
    ["gRPC-Web", "application/grpc-web+proto"],
    ["Connect", "application/json"],
  ])("names the code of what could not be read over %s", async (_name, type) => {
    const headers = { "content-type": type, "service-api-key": (await plain.key()).text };
    const answer = await raw(plain, "2", { path, headers, body: [Buffer.from([0, 0, 0, 0, 2, 255, 255])] });
    expect(["invalid_argument", 3]).toContain(codeOf(answer));
    expect(await plain.lineOf(String(answer.headers["x-request-id"]))).toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  test("holds one line for a call of /v1", async () => {
    const { text, clientId } = await plain.key();
    const headers = { "content-type": "application/json", "service-api-key": text };
    const call = { rpc: "belfry.receiver.v1.DataReceiverService/PutEvents", client: clientId };
    for (const [body, status, code] of [
      ["{}", 200, "OK"],
      ["{", 400, "INVALID_ARGUMENT"],
    ] as const) {
      const answer = await raw(plain, "1.1", { path: "/v1/data-receiver/events", headers, body: [Buffer.from(body)] });
      expect(await plain.lineOf(String(answer.headers["x-request-id"]))).toMatchObject({ ...call, status, code });
    }
    const refused = await raw(plain, "1.1", { path: "/v1/data-receiver/events", body: [] });
    expect(await plain.lineOf(String(refused.headers["x-request-id"]))).toMatchObject({
      status: 401,
      code: "UNAUTHENTICATED",
    });
  });

  test("holds neither keys nor bodies nor queries", async () => {
    const { text } = await plain.key();
    for (const key of [text, `${text}x`, "bf_secret"]) {
      const headers = { "content-type": "application/json", "service-api-key": key };
      await raw(plain, "1.1", {
        path: `${path}?token=canary-query`,
        headers,
        body: [Buffer.from('{"events":[{"body":"canary-body"}]}')],
      });
      await raw(plain, "1.1", { method: "GET", path: "/nothing?token=canary-query", headers });
    }
    const log = JSON.stringify(plain.lines);
    for (const secret of [text, "bf_secret", "canary"]) expect(log).not.toContain(secret);
  });
});

describe("the local certificate authority", () => {
  const settings = (dataDir: string, host = "localhost") => ({ dataDir, host, tlsCert: undefined, tlsKey: undefined });

  test("is made once, its keys are for no one else's eyes", async () => {
    const dataDir = temporaryDir();
    const first = await certificate(settings(dataDir));
    expect(await certificate(settings(dataDir))).toEqual(first);
    for (const name of ["ca-key.pem", "server-key.pem"]) expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o600);
    const ca = new X509Certificate(readFileSync(first.caFile ?? ""));
    const leaf = new X509Certificate(first.cert);
    expect(leaf.verify(ca.publicKey)).toBe(true);
    expect(ca.ca).toBe(true);
    for (const name of ["localhost", "127.0.0.1", "::1"]) {
      expect(leaf.checkHost(name) ?? leaf.checkIP(name), name).toBeDefined();
    }
  });

  test("is made again for another host: it may sign for its own names alone", async () => {
    const dataDir = temporaryDir();
    const first = await certificate(settings(dataDir));
    const ca = readFileSync(first.caFile ?? "", "utf8");
    const second = await certificate(settings(dataDir, "belfry.internal"));
    expect(new X509Certificate(second.cert).checkHost("belfry.internal")).toBeDefined();
    expect(readFileSync(second.caFile ?? "", "utf8")).not.toBe(ca);
    expect(dirname(second.caFile ?? "")).toBe(dataDir);
  });

  test("files that cannot be used are named with their setting", async () => {
    const dataDir = temporaryDir();
    await certificate(settings(dataDir));
    await certificate(settings(join(dataDir, "other")));
    const [cert, key, otherKey] = ["server.pem", "server-key.pem", "other/server-key.pem"].map((name) =>
      join(dataDir, name),
    );
    for (const [tlsCert, tlsKey, said] of [
      [`${cert}x`, key, `BELFRY_TLS_CERT: ${cert}x does not exist`],
      [cert, dataDir, `BELFRY_TLS_KEY: ${dataDir} is a directory`],
      [key, key, `BELFRY_TLS_CERT: ${key} holds no certificate in PEM form`],
      [cert, cert, `BELFRY_TLS_KEY: ${cert} holds no private key without a passphrase in PEM form`],
      [cert, otherKey, `BELFRY_TLS_KEY: ${otherKey} is not the key of the first certificate in ${cert}`],
    ] as const) {
      await expect(certificate({ dataDir, host: "localhost", tlsCert, tlsKey })).rejects.toThrow(new StartError(said));
    }
  });

  test("stands back for a configured certificate", async () => {
    const dataDir = temporaryDir();
    await certificate(settings(dataDir));
    const tlsCert = join(dataDir, "server.pem");
    const tlsKey = join(dataDir, "server-key.pem");
    const configured = await certificate({ dataDir: temporaryDir(), host: "localhost", tlsCert, tlsKey });
    expect(configured).toMatchObject({
      cert: readFileSync(tlsCert, "utf8"),
      key: readFileSync(tlsKey, "utf8"),
      caFile: undefined,
    });
  });
});
