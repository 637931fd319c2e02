import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";
import { describe, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { httpVersions, raw, unfinished } from "../support/clients.ts";
import { served, testPort } from "../support/port.ts";
import { reasonDetail } from "../support/reasons.ts";

const service = served(DataReceiverService, { putEvents: ({ events }) => ({ succeeded: events.length }) });
const plain = await testPort([service]);
const secure = await testPort([service], { secure: true, database: plain.database });

/** What a port answers to these pieces, sent one after the other, until it closes or is silent for a while. */
async function said(port: number, pieces: readonly (string | Uint8Array)[]) {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (piece) => {
    text += piece;
  });
  socket.on("error", () => {});
  await once(socket, "connect");
  for (const piece of pieces) {
    socket.write(piece);
    await sleep(20);
  }
  await Promise.race([once(socket, "close"), sleep(500)]);
  socket.destroy();
  const [head = "", body = ""] = text.split("\r\n\r\n");
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), body };
}

describe("a request in plain text to a port that speaks TLS", () => {
  test.each([
    ["HTTP/1.1", ["GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"]],
    ["HTTP/1.1, byte by byte", ["G", "E", "T / HTTP/1.1\r\n\r\n"]],
    ["HTTP/2", ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]],
  ])("%s: is told so in our error form", async (_name, pieces) => {
    const { status, body } = await said(secure.address.port, pieces);
    expect(status).toBe(400);
    expect(JSON.parse(body)).toEqual({
      code: 3,
      message: "this port speaks TLS: use an address that begins with https",
      details: [reasonDetail("MALFORMED_REQUEST")],
    });
  });

  test("leaves the port as it was, also when the client has left before the answer", async () => {
    for (let i = 0; i < 20; i += 1) {
      const socket = connect(secure.address.port, "127.0.0.1", () => {
        socket.write("GET / HTTP/1.1\r\n\r\n");
        socket.resetAndDestroy();
      });
      await once(socket, "close");
    }
    expect(await raw(secure, "1.1", { method: "GET", path: "/healthz" })).toMatchObject({ status: 200 });
  });
});

test("a handshake of TLS may come in small pieces", async () => {
  const relay = createServer((client) => {
    const inner = connect({ port: secure.address.port, host: "127.0.0.1", noDelay: true });
    inner.pipe(client);
    client.on("close", () => inner.destroy());
    void (async () => {
      for await (const piece of client) {
        for (let at = 0; at < piece.length; at += at === 0 ? 1 : 97) {
          inner.write(piece.subarray(at, at === 0 ? 1 : at + 97));
          await sleep(1);
        }
      }
    })().catch(() => {});
  });
  await once(relay.listen(0, "127.0.0.1"), "listening");
  const { port } = relay.address() as AddressInfo;
  const slow = tls.connect({ port, rejectUnauthorized: false, ALPNProtocols: ["h2"] });
  await once(slow, "secureConnect");
  expect(slow.alpnProtocol).toBe("h2");
  slow.destroy();
  relay.close();
});

describe("a path that no one serves", () => {
  test.each(httpVersions)("is answered over HTTP/%s without waiting for the body, and named", async (version) => {
    for (const path of ["/nothing", "/v1/nothing", "/v1", "/belfry.events.v1.EventQueryService/Nothing"]) {
      const headers = { "content-type": "application/json" };
      const answer = await raw(plain, version, { path: `${path}?key=x`, headers, body: unfinished() });
      expect(JSON.parse(answer.body.toString()), path).toEqual({
        code: 5,
        message: `there is nothing at ${path}`,
        details: [reasonDetail("PATH_NOT_FOUND")],
      });
    }
  });

  test("is named in part when it is long", async () => {
    const { body } = await raw(plain, "1.1", { method: "GET", path: `/v1/${"x".repeat(9000)}` });
    expect(JSON.parse(body.toString()).message).toBe(`there is nothing at /v1/${"x".repeat(76)}…`);
  });
});

test("a request line with the whole address, as proxies are sent, means its path", async () => {
  const { text } = await plain.key();
  const ask = (target: string) =>
    said(plain.address.port, [
      `POST ${target} HTTP/1.1\r\nhost: x\r\nservice-api-key: ${text}\r\ncontent-length: 2\r\n\r\n{}`,
    ]);
  const direct = await ask("/v1/data-receiver/events");
  expect(direct.status).toBe(200);
  expect(await ask("http://belfry.example:8443/v1/data-receiver/events")).toEqual(direct);
  expect((await ask("HTTP://belfry.example")).body).toContain("there is nothing at /");
});
