import { describe, expect, test } from "vitest";
import { codeOf, openHttp2, type RawAnswer } from "../support/clients.ts";
import { turnMsMax } from "../support/loop-turns.ts";
import { testTenant } from "../support/tenant.ts";
import { fileServer } from "./file-server.ts";
import { type Hostile, hostile, requestsOf } from "./hostile.ts";
import { random, seedOf } from "./random.ts";

const seed = seedOf(7);
const { server, sql } = await fileServer({ NODE_OPTIONS: "--max-old-space-size=256" });
const attacker = (await testTenant(sql)).headers["service-api-key"] as string;

const names = ["canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists"];
const codeNumber = (answer: RawAnswer) => {
  const code = codeOf(answer);
  if (typeof code === "number") return code;
  return code === "resource_exhausted" ? 8 : names.indexOf(code) + 1 || code;
};

/** Sends them one after the other; returns what was wrong, and a turn of the loop that keeps neighbours waiting. */
async function sent(all: Record<string, Hostile>, packed: boolean): Promise<string[]> {
  const wrong: string[] = [];
  const one = openHttp2(server);
  await server.longestTurn();
  for (const [name, each] of Object.entries(all)) {
    for (const { name: way, request } of requestsOf(each, attacker, packed)) {
      const answer = await one.send(request);
      const code = codeNumber(answer);
      if (!(each.codes ?? [3, 8]).includes(code as number))
        wrong.push(`${name} over ${way}: ${code} ${String(answer.body).slice(0, 200)}`);
    }
  }
  const { ms } = await server.longestTurn();
  if (ms > turnMsMax) wrong.push(`a turn of ${Math.round(ms)} ms`);
  one.close();
  return wrong;
}

describe(`requests that are small on the wire and large once they are read (SEED=${seed})`, () => {
  test("plain: each is refused in our form, in no long turn", async () => {
    expect(await sent(hostile(120_000), false)).toEqual([]);
  });

  test("compressed: each is refused in our form, in no long turn", async () => {
    expect(await sent(hostile(700_000), true)).toEqual([]);
  });

  test("with a byte changed here and there they do no more", async () => {
    const { int } = random(seed);
    const changed = (bytes: Buffer) => {
      const copy = Buffer.from(bytes);
      for (let i = 0; i < 5; i += 1) copy[int(0, Math.min(200, copy.byteLength) - 1)] = int(0, 255);
      return copy;
    };
    const mutants = Object.entries(hostile(60_000)).map(([name, each]): [string, Hostile] => {
      return [name, { ...each, json: changed(each.json), binary: changed(each.binary), codes: [0, 3, 8] }];
    });
    expect(await sent(Object.fromEntries(mutants), true)).toEqual([]);
  });

  test("the largest batch that is let in is answered whole, item by item", async () => {
    const connection = openHttp2(server);
    const headers = { "service-api-key": attacker, "content-type": "application/json" };
    const body = [Buffer.from(`{"detailedResponse":true,"events":[${"{},".repeat(49_999)}{}]}`)];
    const answer = await connection.send({ path: "/v1/data-receiver/events", headers, body });
    expect(answer.status).toBe(200);
    const { failed, failedEvents } = JSON.parse(answer.body.toString());
    expect([failed, failedEvents.length]).toEqual([50_000, 50_000]);
    connection.close();
  });

  test("the process has lived through all of it", () => {
    expect(server.complaints).toEqual([]);
    expect(server.pid).toBeDefined();
  });
});
