import type { DescMethod } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { routes } from "#gen/routes.ts";
import { createClient, createKey } from "../../src/auth/create-tenant.ts";
import { newApiKey } from "../../src/auth/key.ts";
import { allMethods, callName, callRpc } from "../support/calls.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;
const tenant = await testTenant(sql);

/** Who calls. The first five must be told apart by nobody: they are all no key that holds. */
const header = (text: string) => ({ "service-api-key": text });
const strangers = {
  "no key": {},
  "a key that is none": header("secret"),
  "a key with a wrong checksum": header(`${newApiKey().text.slice(0, -6)}000000`),
  "an unknown key": header(newApiKey().text),
  "an expired key": header(await oldKey(BigInt(Date.now() - 1))),
  "a revoked key": header(await revokedKey()),
};
const clients = {
  DATA_INGEST: await keyHeaders(sql, tenant.id, "DATA_INGEST", null),
  USER_MANAGEMENT: await keyHeaders(sql, tenant.id, "USER_MANAGEMENT", null),
  read_only_user: await keyHeaders(sql, tenant.id, "USER", "read_only_user"),
  user: await keyHeaders(sql, tenant.id, "USER", "user"),
  manager: tenant.headers,
};

async function oldKey(expiresMs: bigint | null) {
  const { id } = await createClient(sql, tenant.id, { name: "old", type: "USER", role: "manager" });
  const { text } = await createKey(sql, tenant.id, id, { description: "", expiresMs });
  return text;
}

async function revokedKey() {
  const text = await oldKey(null);
  const prefix = text.split("_")[1] ?? "";
  await sql`delete from api_keys where tenant_id = ${tenant.id} and prefix = ${prefix}`;
  return text;
}

/*
 * The table of who may call what, row by row; columns as in `clients`. It does not look at the options in the proto
 * files, which are what it checks.
 */
const reads = (method: DescMethod) => /^(Get|List|Search|Count|Group|BatchGet|Watch|Preview|Explain)/.test(method.name);
const of =
  (...services: string[]) =>
  (method: DescMethod) =>
    services.includes(method.parent.name);
const configuring = of(
  "TriggerService",
  "DestinationService",
  "RuleService",
  "DeliveryService",
  "EntityFieldDictionaryService",
  "MetricDictionaryService",
  "EventFieldDictionaryService",
  "CustomPropertyUpdaterService",
  "MaintenanceWindowService",
);
const searching = of("EntityService", "MetricQueryService", "EventQueryService");
const operating = of("SilenceService", "EventViewService");
const table: readonly { what: string; is: (method: DescMethod) => boolean; may: readonly boolean[] }[] = [
  { what: "data receiver", is: of("DataReceiverService"), may: [true, false, false, true, true] },
  {
    what: "accounts, groups",
    is: of("UserAccountService", "UserGroupService"),
    may: [false, true, false, false, true],
  },
  {
    what: "all other reads and searches, previews",
    is: (method) => reads(method) && (configuring(method) || searching(method) || operating(method)),
    may: [false, false, true, true, true],
  },
  {
    what: "event annotate and status, views, custom properties, silences",
    is: (method) =>
      of("EventManagementService", "CustomPropertyService")(method) || (operating(method) && !reads(method)),
    may: [false, false, false, true, true],
  },
  {
    what: "notification, dictionary, updaters, maintenance windows: writes and tests",
    is: (method) => configuring(method) && !reads(method),
    may: [false, false, false, false, true],
  },
  {
    what: "credentials, API clients and keys, audit log",
    is: of("CredentialService", "ApiClientService", "AuditLogService"),
    may: [false, false, false, false, true],
  },
  { what: "one's own session", is: of("SessionService"), may: [true, true, true, true, true] },
];

/** It takes no key in a header, and requests of our own pages alone (test/tenants/sessions.test.ts). */
const takesNoKey = (method: DescMethod) => callName(method) === "SessionService/CreateSession";

test("every RPC stands in one row of the table", () => {
  const rows = allMethods.map((method) => [callName(method), table.filter(({ is }) => is(method)).length]);
  expect(rows.filter(([, count]) => count !== 1)).toEqual([]);
  expect(allMethods.length).toBeGreaterThan(80);
});

const streams = (method: DescMethod) => method.methodKind === "server_streaming";

/** The code over gRPC. A stream that has not refused soon is open. */
async function grpcCode(method: DescMethod, headers: Record<string, string>): Promise<number> {
  const signal = AbortSignal.timeout(streams(method) ? 1500 : 10_000);
  try {
    await callRpc(server.target, headers, method, method.methodKind === "client_streaming" ? [] : {}, signal);
    return 0;
  } catch (error) {
    return streams(method) && signal.aborted ? 0 : ((error as { code?: number }).code ?? -1);
  }
}

/** Status and code over each of the RPC's routes of /v1, with path variables that name nothing. */
async function v1Codes(
  method: DescMethod,
  headers: Record<string, string>,
): Promise<{ status: number; code: number }[]> {
  const own = routes.filter((route) => route.method === method);
  return await Promise.all(
    own.map(async ({ verb, template, body }) => {
      const signal = AbortSignal.timeout(streams(method) ? 1500 : 10_000);
      const path = template.replaceAll(/\{[^}]*\}/g, "none");
      try {
        const answer = await v1(server.url, headers)(verb, path, body === "" ? undefined : {}, signal);
        return { status: answer.status, code: answer.status === 200 ? 0 : answer.body.code };
      } catch (error) {
        if (streams(method) && signal.aborted) return { status: 200, code: 0 };
        throw error;
      }
    }),
  );
}

/** Credentials answer 500 where others answer 401. */
const unauthenticatedStatus = (method: DescMethod) => (method.parent.name === "CredentialService" ? 500 : 401);

const keyed = allMethods.filter((method) => !takesNoKey(method));

describe.each(keyed.map((method) => ({ name: callName(method), method })))("$name", ({ method }) => {
  const row = table.find(({ is }) => is(method));

  test.each(Object.entries(strangers))("refuses %s", async (_who, headers) => {
    expect(await grpcCode(method, headers)).toBe(16);
    for (const answer of await v1Codes(method, headers)) {
      expect(answer).toEqual({ status: unauthenticatedStatus(method), code: 16 });
    }
  });

  test.each(Object.entries(clients).map(([who, headers], i) => ({ who, headers, may: row?.may[i] ?? false })))(
    "$who: $may",
    async ({ headers, may }) => {
      const overGrpc = await grpcCode(method, headers);
      const overV1 = await v1Codes(method, headers);
      if (!may) {
        expect(overGrpc).toBe(7);
        for (const answer of overV1) expect(answer).toEqual({ status: 403, code: 7 });
        return;
      }
      expect([7, 16, 13, -1]).not.toContain(overGrpc);
      for (const { status, code } of overV1) {
        expect([7, 16, 13, undefined]).not.toContain(code);
        expect([401, 403]).not.toContain(status);
      }
    },
  );
});

describe.each(allMethods.filter(takesNoKey))("$name", (method) => {
  test.each(Object.entries({ ...strangers, ...clients }))(
    "refuses %s, outside of our own pages",
    async (_who, headers) => {
      expect(await grpcCode(method, headers)).toBe(7);
      for (const answer of await v1Codes(method, headers)) expect(answer).toEqual({ status: 403, code: 7 });
    },
  );
});
