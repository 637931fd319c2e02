import { toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { isAudited, requestedResource, resourceType } from "../src/rpc/audit.ts";
import { allMethods, callName, callRpc, isBuilt, newWorld, readCalls } from "./support/calls.ts";
import { transport } from "./support/clients.ts";
import { testServer } from "./support/server.ts";
import { testTenant } from "./support/tenant.ts";

const server = await testServer();
const { sql } = server.database;
const calls = await readCalls();

const prober = await testTenant(sql);
const built: typeof allMethods = await (async () => {
  const found = await Promise.all(allMethods.map((method) => isBuilt(server, prober.headers, method)));
  return allMethods.filter((_method, i) => found[i]);
})();

/** All rows of a tenant but for the time of its keys' last use, and the jobs that look after metrics, windows and entities. */
async function everythingOf(tenantId: string): Promise<Record<string, string[]>> {
  const tables = await sql<{ name: string }[]>`
    select table_name as name from information_schema.columns
    where table_schema = 'public' and column_name = 'tenant_id' order by table_name`;
  const rows = await Promise.all(
    tables.map(async ({ name }) => {
      const found = await sql<{ row: string }[]>`
        select (to_jsonb(t) - 'last_used_ms')::text as row from ${sql(name)} t
        where t.tenant_id = ${tenantId} and coalesce(to_jsonb(t)->>'kind', '') not similar to '(metrics|maintenance|entities).%'`;
      return [name, found.map(({ row }) => row).sort()] as const;
    }),
  );
  return Object.fromEntries(rows);
}

async function auditOf(headers: Record<string, string>) {
  const { entries } = await createClient(AuditLogService, transport(server.target, "grpc", headers)).listAuditEntries({
    pageSize: 1000,
  });
  return entries;
}

test("every row of calls names an RPC", () => {
  expect(Object.keys(calls).filter((name) => !allMethods.some((method) => callName(method) === name))).toEqual([]);
});

describe.each(built.map((method) => ({ name: callName(method), method })))("$name", ({ name, method }) => {
  const row = calls[name];
  const json = (answer: unknown) => JSON.stringify(toJson(method.output, answer as never));

  test("has a row in a calls.ts", () => {
    expect(row, `${name} is built: add its row to test/<folder>/calls.ts`).toBeDefined();
  });

  test.runIf(row !== undefined)(
    isAudited(method) ? "leaves exactly one audit row when it succeeds" : "leaves no audit row",
    async () => {
      const world = await newWorld(server);
      const request = (await row?.request(world)) ?? {};
      const headers = (await row?.headers?.(world)) ?? world.tenant.headers;
      const before = await auditOf(world.tenant.headers);
      await callRpc(server.target, headers, method, request);
      const after = await auditOf(world.tenant.headers);
      const fresh = after.slice(0, after.length - before.length);
      expect(after.slice(fresh.length)).toEqual(before);
      if (!isAudited(method)) return expect(fresh).toEqual([]);
      expect(fresh).toHaveLength(1);
      expect(fresh[0]).toMatchObject({
        outcome: "OK",
        rpc: `${method.parent.typeName}/${method.name}`,
        client: { name: "USER manager" },
        resource: expect.stringMatching(new RegExp(`^${resourceType(method)}/.`)),
      });
    },
  );

  test.runIf(row !== undefined)(`shows and changes nothing of another tenant (${row?.elsewhere})`, async () => {
    const world = await newWorld(server);
    const request = (await row?.request(world)) ?? {};
    const before = await everythingOf(world.tenant.id);
    const stranger = await testTenant(sql);
    const answer = callRpc(server.target, stranger.headers, method, request, AbortSignal.timeout(10_000));
    if (row?.elsewhere === "not found") await expect(answer).rejects.toMatchObject({ code: 5 });
    else if (row?.elsewhere === "refused") await expect(answer).rejects.toMatchObject({ code: 7 });
    else if (row?.elsewhere === "his own") await answer;
    else {
      const shown = json(await answer);
      for (const secret of [world.mark, world.tenant.id, world.tenant.name]) expect(shown).not.toContain(secret);
      // The row would prove nothing if its own tenant were shown nothing either.
      const own = json(await callRpc(server.target, world.tenant.headers, method, request));
      if (row?.unmarked) expect(own).not.toBe(shown);
      else expect(own).toContain(world.mark);
    }
    expect(await everythingOf(world.tenant.id)).toEqual(before);
  });
});

for (const method of allMethods.filter((method) => !built.includes(method)))
  test.todo(`${callName(method)} is not built`);

test.each([
  ["SetMatchingStatus", {}, "event/"],
  ["SetEventStatus", {}, "event/"],
  ["RetryDeliveries", { destination: "ops" }, "destination/ops"],
  ["RetryDelivery", { id: "7" }, "delivery/7"],
  ["CreateDestination", { destination: { name: "ops" } }, "destination/ops"],
  ["CreateRule", { rule: { name: "page" } }, "rule/page"],
])("the audit log names what a refused %s acts on", (name, request, resource) => {
  const method = allMethods.find((each) => each.name === name) as (typeof allMethods)[number];
  expect(requestedResource(method, request)).toBe(resource);
});
