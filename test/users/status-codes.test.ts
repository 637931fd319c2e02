import { ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { type Case, cases, cloudRoles, type Made, type Method, password } from "./cases.ts";

const server = await testServer();
const { sql } = server.database;
const { headers } = await testTenant(sql);

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
