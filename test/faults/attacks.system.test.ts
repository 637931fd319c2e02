import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { protocols, transport } from "../support/clients.ts";
import { testTenant } from "../support/tenant.ts";
import { attacks, misshapen } from "./attacks.ts";
import { fileServer, memoryBytes } from "./file-server.ts";
import { random, seedOf } from "./random.ts";

const MiB = 1024 * 1024;
const seed = seedOf(23);
const { server, sql } = await fileServer();
const { headers } = await testTenant(sql);
const victim = { url: server.url, key: headers["service-api-key"] as string };

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
    const before = memoryBytes(server);
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
      most = Math.max(most, memoryBytes(server));
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
