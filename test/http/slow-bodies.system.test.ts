import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { codeOf, httpVersions, raw } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();
const slow = await testTenant(server.database.sql);
const json = { "content-type": "application/json" };

/** A piece at once, then a byte each second. */
async function* byteByByte(first: Buffer, seconds: number) {
  yield first;
  for (let i = 0; i < seconds; i += 1) {
    await sleep(1000);
    yield Buffer.from(" ");
  }
}

const paths = ["/v1/data-receiver/events", "/belfry.receiver.v1.DataReceiverService/PutEvents"];

test.for(httpVersions.flatMap((version) => paths.map((path) => [version, path] as const)))(
  "a body that comes byte by byte ends with code 4, long before its deadline: HTTP/%s %s",
  { concurrent: true, timeout: 40_000 },
  async ([version, path]) => {
    const headers = { ...slow.headers, ...json };
    const answer = await raw(server.target, version, { path, headers, body: byteByByte(Buffer.from("{"), 30) });
    expect(["deadline_exceeded", 4]).toContain(codeOf(answer));
    expect(answer.body.toString()).toContain("the request comes too slowly: less than 4096 bytes in 10000 ms");
    expect(answer.ms).toBeLessThan(25_000);
  },
);
