import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { testServer } from "../support/server.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });

/** Announces a body and sends it after `waitMs`; as curl does, ends the request at once when the head of an error comes first. */
async function send(path: string, waitMs: number) {
  const session = connect(server.url, { ca: readFileSync(server.caFile ?? "") });
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/json",
    "content-length": "2",
  });
  let status: number | undefined;
  stream.on("response", (head) => {
    status = head[":status"];
    if (!stream.writableEnded) stream.end();
  });
  const ended = new Promise<string>((resolve, reject) => {
    let body = "";
    stream.setEncoding("utf8").on("data", (text) => {
      body += text;
    });
    stream.on("end", () => resolve(body)).on("error", reject);
  });
  const sending = sleep(waitMs).then(() => stream.writableEnded || stream.end("{}"));
  try {
    const body = await ended;
    return { status, body: JSON.parse(body) };
  } finally {
    await sending;
    session.destroy();
  }
}

describe("a client that stops sending when the head of a refusal comes still reads all of it", () => {
  test.each([
    { path: "/v1/events:search", status: 401, code: 16 },
    { path: "/v1/nothing", status: 404, code: 5 },
    { path: "/nothing", status: 404, code: 5 },
    { path: "/belfry.events.v1.EventQueryService/SearchEvents", status: 401, code: "unauthenticated" },
  ])("$path", async ({ path, status, code }) => {
    for (const waitMs of [0, 20, 20, 20, 400]) {
      const answer = await send(path, waitMs);
      expect(answer, `body after ${waitMs} ms`).toMatchObject({ status, body: { code } });
    }
  });
});
