import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import {
  accountsPath,
  type Case,
  cases,
  cloudRoles,
  groupsPath,
  idsPath,
  type Made,
  type Method,
  password,
} from "./cases.ts";

const server = await testServer();
const { sql } = server.database;
const { id: tenantId, headers } = await testTenant(sql);
const userManagement = await keyHeaders(sql, tenantId, "USER_MANAGEMENT", null);

let made = 0;
async function make(): Promise<Made> {
  made += 1;
  const [email, group, other] = [`person${made}@example.com`, `group ${made}`, `other ${made}`];
  const way = transport(server.target, "grpc", headers);
  await createClient(UserGroupService, way).createUserGroup({ group: { name: group, cloudRoles } });
  const user = { email, password, groups: [group] };
  const answer = await createClient(UserAccountService, way).createUserAccount({ user });
  return { email, group, other, id: answer.user?.id ?? "" };
}

let unchanged: Promise<Made> | undefined;
/** What a case is tried on: all that are refused share one, which none of them changes. */
const madeFor = (code: Case["code"]) => {
  if (code === 0) return make();
  unchanged ??= make();
  return unchanged;
};

/** Code and message of a call over gRPC. */
async function outcome(header: Record<string, string>, rpc: Method, message: object) {
  const client = createClient(rpc.parent, transport(server.target, "grpc", header));
  const call = (client as unknown as Record<string, (message: object) => Promise<unknown>>)[rpc.localName];
  try {
    await call?.(message);
    return { code: 0, says: "" };
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    return { code, says: rawMessage };
  }
}

const text = (says: Case["says"], made: Made) => (typeof says === "function" ? says(made) : (says ?? ""));

describe.each(cases)("$what", ({ rpc, json, message, status, code, says }) => {
  test(`${status} over /v1`, async () => {
    const given = await madeFor(code);
    const answer = await v1(server.url, headers)(...json(given));
    expect(answer.status).toBe(status);
    if (code === 0) return;
    const { message: told, ...body } = answer.body;
    expect(body.code).toBe(code);
    // A bare body has no prefix; over gRPC the field has that of its message.
    expect(told).toContain(text(says, given));
  });

  test(`code ${code} over gRPC`, async () => {
    const given = await madeFor(code);
    const found = await outcome(headers, rpc, message(given));
    expect(found.code).toBe(code);
    expect(found.says).toContain(text(says, given));
  });
});

describe("malformed JSON", () => {
  test.each([
    ["POST", accountsPath, '{"user": {"email": "a@b.c", }}'],
    ["POST", idsPath, '{"email": '],
    ["POST", groupsPath, '{"name": "x" "cloudRoles": []}'],
    ["PUT", `${groupsPath}/x`, '{"cloudRoles": ["user"'],
    ["PUT", `${accountsPath}/x`, "no JSON"],
  ])("%s %s answers 400, code 3", async (method, path, body) => {
    const answer = await v1(server.url, headers)(method, path, body);
    expect(answer).toMatchObject({ status: 400, body: { code: 3 } });
    expect(answer.body.message).toMatch(/byte \d+/);
  });
});

const rpcs: Method[] = [...Object.values(UserAccountService.method), ...Object.values(UserGroupService.method)];
const oneOf = (rpc: Method) => cases.find((each) => each.rpc === rpc) as Case;

describe.each(rpcs.map((rpc) => ({ name: rpc.name, rpc })))("$name", ({ rpc }) => {
  const { json, message } = oneOf(rpc);

  test("without a key, or with a wrong one: 401, code 16", async () => {
    const given = await madeFor(Code.Unauthenticated);
    const wrong = { "service-api-key": `${headers["service-api-key"]}x` };
    for (const header of [{} as Record<string, string>, wrong]) {
      expect(await v1(server.url, header)(...json(given))).toMatchObject({ status: 401, body: { code: 16 } });
      expect((await outcome(header, rpc, message(given))).code).toBe(Code.Unauthenticated);
    }
  });

  test.each([
    { type: "DATA_INGEST" as const, role: null },
    { type: "USER" as const, role: "read_only_user" as const },
    { type: "USER" as const, role: "user" as const },
  ])("by a client of $type $role: 403, code 7", async ({ type, role }) => {
    const given = await madeFor(Code.PermissionDenied);
    const header = await keyHeaders(sql, tenantId, type, role);
    expect(await v1(server.url, header)(...json(given))).toMatchObject({ status: 403, body: { code: 7 } });
    expect((await outcome(header, rpc, message(given))).code).toBe(Code.PermissionDenied);
  });

  test("a client of USER_MANAGEMENT may call it", async () => {
    expect((await v1(server.url, userManagement)(...json(await make()))).status).toBe(200);
    expect((await outcome(userManagement, rpc, message(await make()))).code).toBe(0);
  });
});
