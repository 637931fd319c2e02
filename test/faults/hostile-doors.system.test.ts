import { writeFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { type IntegrationParts, integrations } from "../../src/integrations/table.ts";
import { extract } from "../support/cases.ts";
import { envelope, openHttp2, type RawRequest } from "../support/clients.ts";
import { turnMsMax } from "../support/loop-turns.ts";
import { testTenant } from "../support/tenant.ts";
import { fileServer, memoryBytes } from "./file-server.ts";
import { doors, type HostileBody, hostileBodies } from "./hostile-doors.ts";

const MiB = 1024 * 1024;
/** A quarter of what a body may be. */
const bodyBytes = 4 * MiB;
/** What a request may take beside 16 times its body: 8 MiB, and garbage that is not collected yet. */
const besideBytes = (8 + 64) * MiB;
const heldBytesMax = 50 * MiB;

const operations = integrations({ config: {} } as IntegrationParts).flatMap(({ name, operations: all }) =>
  all
    .filter(({ body }) => body !== undefined)
    .map((operation) => ({ ...operation, door: `${name}/${operation.name}` })),
);

test("each operation of another tool's protocol that reads a body is tried", () => {
  expect(Object.keys(doors).sort()).toEqual(operations.map(({ door }) => door).sort());
});

const { server, sql } = await fileServer({
  MALLOC_ARENA_MAX: "2",
  NODE_OPTIONS: "--max-semi-space-size=16 --max-old-space-size=1000",
});
const [connection, neighbourConnection] = [openHttp2(server), openHttp2(server)];
afterAll(() => {
  connection.close();
  neighbourConnection.close();
});
const attacker = await testTenant(sql);
const neighbour = await testTenant(sql);

/** The requests that carry a body to an operation: over each route and in each packing. */
function requestsOf(operation: (typeof operations)[number], made: HostileBody, bytes: Buffer) {
  const requests: { way: string; request: RawRequest }[] = [];
  for (const door of doors[operation.door] ?? []) {
    const type = made.form === "json" ? { "content-type": "application/json" } : door.binary;
    const has = made.form === "json" ? door.sample !== undefined : door.schema !== undefined;
    if (!has || type === undefined) continue;
    for (const { name, headers, pack } of door.packings) {
      const body = pack(bytes);
      for (const route of operation.routes) {
        if ("path" in route) {
          const all = { ...attacker.headers, ...type, ...headers };
          requests.push({ way: `HTTP, ${name}`, request: { path: route.path, headers: all, body: [body] } });
        } else if (made.form === "binary") {
          const packed: Record<string, string> = name === "plain" ? {} : { "grpc-encoding": name };
          const all = { ...attacker.headers, "content-type": "application/grpc", ...packed };
          const framed = envelope(body, name === "plain" ? 0 : 1);
          requests.push({ way: `gRPC, ${name}`, request: { path: `/${route.grpc}`, headers: all, body: [framed] } });
        }
      }
    }
  }
  return requests;
}

async function wrongWith(request: RawRequest, bytes: number): Promise<string[]> {
  const before = memoryBytes(server, "VmRSS");
  // The most that it has taken is counted from here on.
  writeFileSync(`/proc/${server.pid}/clear_refs`, "5");
  await server.longestTurn();
  const headers = { ...neighbour.headers, "content-type": "application/json" };
  const search = { path: "/v1/events:search", headers, body: [Buffer.from('{"query":{}}')] };
  const [answer, other] = await Promise.all([connection.send(request), neighbourConnection.send(search)]);
  const turn = (await server.longestTurn()).ms;
  const took = memoryBytes(server, "VmHWM") - before;
  const wrong: string[] = [];
  if (answer.status >= 500) wrong.push(`${answer.status} ${answer.body.toString().slice(0, 200)}`);
  if (other.status !== 200) wrong.push(`the neighbour was answered ${other.status}`);
  if (turn > turnMsMax) wrong.push(`a turn of ${Math.round(turn)} ms`);
  if (took > 16 * bytes + besideBytes) wrong.push(`${Math.round(took / MiB)} MiB for ${Math.round(bytes / MiB)}`);
  return wrong;
}

test.each(operations)(
  "$door answers what is cheap to send in the memory of its body and no long turn",
  async (operation) => {
    const wrong: string[] = [];
    const held = await server.heldBytes();
    const seen = new Set<string>();
    for (const door of doors[operation.door] ?? []) {
      for (const made of extract(hostileBodies(door, bodyBytes), 8)) {
        if (seen.has(`${made.form} ${made.name}`)) continue;
        seen.add(`${made.form} ${made.name}`);
        const bytes = made.make();
        for (const { way, request } of requestsOf(operation, made, bytes))
          for (const each of await wrongWith(request, bytes.length)) wrong.push(`${made.name}, ${way}: ${each}`);
      }
    }
    expect(wrong).toEqual([]);
    expect((await server.heldBytes()) - held).toBeLessThan(heldBytesMax);
    expect(server.complaints).toEqual([]);
  },
);
