import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { protocols, transport } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { attacks, misshapen } from "./attacks.ts";
import { clear, place } from "./place.ts";
import { random, seedOf } from "./random.ts";
import { patient, serverProcess } from "./server-process.ts";

const MiB = 1024 * 1024;
const seed = seedOf(23);
const { sql, url } = await testDatabase();
const dataDir = await place();
const server = await serverProcess({ ...patient(), BELFRY_DATA_DIR: dataDir, DATABASE_URL: url });
await server.start();
afterAll(async () => {
  await server.stop();
  await clear(dataDir);
});
const { headers } = await testTenant(sql);
const victim = { url: server.url, key: headers["service-api-key"] as string };

const memoryBytes = () =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))?.[1]) * 1024;

describe(`bad requests (SEED=${seed})`, () => {
  test.each(Object.entries(attacks))("%s: answered with an error in our form, or not at all", async (_name, attack) => {
    const { answers } = await attack(victim);
    expect(misshapen(answers)).toEqual([]);
  });

  test("many at once, of all kinds, neither end the server nor fill its memory; other clients are answered", async () => {
    const { pick } = random(seed);
    const names = Object.keys(attacks);
    let going = true;
    let requests = 0;
    const wrong: string[] = [];
    async function attacker() {
      while (going) {
        const name = pick(names);
        const damage = await (attacks[name] as (typeof attacks)[string])(victim);
        requests += damage.requests;
        wrong.push(...misshapen(damage.answers).map((answer) => `${name}: ${answer}`));
      }
    }
    const before = memoryBytes();
    let most = before;
    const attackers = Array.from({ length: 12 }, attacker);
    const answered = protocols.map(() => 0);
    const others = protocols.map(async (protocol, i) => {
      const client = createClient(EventQueryService, transport(server, protocol, headers, i % 2 === 1 ? "1.1" : "2"));
      for (; going; answered[i] = (answered[i] ?? 0) + 1) {
        await client.searchEvents({ query: {} });
        await sleep(20);
      }
    });
    // Others are answered all the while: where they are not, this does not end.
    while (requests < 500 || Math.min(...answered) < 5) {
      most = Math.max(most, memoryBytes());
      await sleep(100);
    }
    going = false;
    await Promise.all(attackers);
    await Promise.all(others);
    expect(wrong).toEqual([]);
    expect(server.complaints).toEqual([]);
    expect(most - before).toBeLessThan(500 * MiB);
  });
});
