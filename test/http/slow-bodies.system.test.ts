import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { codeOf, httpVersions, raw } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();
const slow = await testTenant(server.database.sql);
const json = { "content-type": "application/json" };

/** A piece at once, then a byte now and then. */
async function* byteByByte(first: Buffer) {
  for (let piece = first; ; piece = Buffer.from(" ")) {
    yield piece;
    await sleep(200);
  }
}

const paths = ["/v1/data-receiver/events", "/belfry.receiver.v1.DataReceiverService/PutEvents"];

test.for(httpVersions.flatMap((version) => paths.map((path) => [version, path] as const)))(
  "a body that comes byte by byte ends with code 4, long before its deadline: HTTP/%s %s",
  { concurrent: true },
  async ([version, path]) => {
    const headers = { ...slow.headers, ...json };
    const answer = await raw(server.target, version, { path, headers, body: byteByByte(Buffer.from("{")) });
    expect(["deadline_exceeded", 4]).toContain(codeOf(answer));
    expect(answer.body.toString()).toContain("the request comes too slowly: less than 4096 bytes in 10000 ms");
  },
);
