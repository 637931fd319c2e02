import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { accountsPath, groupsPath, password } from "./cases.ts";

const server = await testServer();
const { sql } = server.database;
const tenant = await testTenant(sql);
const json = v1(server.url, tenant.headers);
const way = transport(server.target, "grpc", tenant.headers);
const accounts = createClient(UserAccountService, way);
const groups = createClient(UserGroupService, way);

/** How often each outcome came: a gRPC code, or a status and the body's code. */
async function outcomes(calls: Promise<string>[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const outcome of await Promise.all(calls)) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}
const grpcOutcome = (call: Promise<unknown>) =>
  call.then(
    () => "0",
    (error) => String(error.code),
  );

describe("of 200 that create the same at once, one succeeds and the others are answered code 6", () => {
  const count = 200;
  const all = <T>(one: (i: number) => T) => Array.from({ length: count }, (_, i) => one(i));

  test("an e-mail, in whatever case, over gRPC", async () => {
    const email = (i: number) => (i % 2 === 0 ? "one@example.com" : "One@Example.com");
    const calls = all((i) => grpcOutcome(accounts.createUserAccount({ user: { email: email(i), password } })));
    expect(await outcomes(calls)).toEqual({ 0: 1, 6: count - 1 });
    const [row] = await sql`select count(*) from user_accounts where tenant_id = ${tenant.id}`;
    expect(row?.count).toBe(1n);
  });

  test("an e-mail over /v1", async () => {
    const user = { email: "two@example.com", password };
    const calls = all(async () => {
      const { status, body } = await json("POST", accountsPath, { user });
      return `${status} ${body.code ?? 0}`;
    });
    expect(await outcomes(calls)).toEqual({ "200 0": 1, "409 6": count - 1 });
  });

  test("a group's name, over gRPC and /v1", async () => {
    const grpc = () => grpcOutcome(groups.createUserGroup({ group: { name: "one", cloudRoles: ["user"] } }));
    expect(await outcomes(all(grpc))).toEqual({ 0: 1, 6: count - 1 });
    const calls = all(async () => {
      const { status, body } = await json("POST", groupsPath, { name: "two", cloudRoles: ["user"] });
      return `${status} ${body.code ?? 0}`;
    });
    expect(await outcomes(calls)).toEqual({ "200 0": 1, "409 6": count - 1 });
  });

  test("an e-mail that accounts change to at once goes to one of them", async () => {
    const made = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        accounts.createUserAccount({ user: { email: `${i}@example.com`, password } }),
      ),
    );
    const calls = made.map(({ user }) =>
      grpcOutcome(accounts.updateUserAccount({ id: user?.id ?? "", email: "wanted@example.com" })),
    );
    expect(await outcomes(calls)).toEqual({ 0: 1, 6: 19 });
  });
});

const rounds = 10;

test(`${rounds} rounds of groups deleted while accounts are made and changed: no account names a missing group`, async () => {
  const made = await Promise.all(
    Array.from({ length: 4 }, (_, i) => accounts.createUserAccount({ user: { email: `r${i}@example.com`, password } })),
  );
  const ids = made.map(({ user }) => user?.id ?? "");
  const seen: Record<string, number> = {};
  for (let round = 0; round < rounds; round++) {
    const names = ["a", "b", "c"].map((letter) => `round ${round} ${letter}`);
    await Promise.all(names.map((name) => groups.createUserGroup({ group: { name, cloudRoles: ["user"] } })));
    // Each account takes the groups in another order, which would invite deadlocks.
    const updates = ids.map((id, i) => {
      const wanted = [...names.slice(i % 3), ...names.slice(0, i % 3)];
      return grpcOutcome(accounts.updateUserAccount({ id, groups: wanted }));
    });
    const doomed = names.slice(0, 2).map((name) => grpcOutcome(groups.deleteUserGroup({ name })));
    const user = { email: `new${round}@example.com`, password, groups: names };
    const found = await outcomes([...updates, ...doomed, grpcOutcome(accounts.createUserAccount({ user }))]);
    for (const [code, times] of Object.entries(found)) seen[code] = (seen[code] ?? 0) + times;
    const missing = await sql`
      select m.account_id, m.group_name from user_account_groups m
      where m.tenant_id = ${tenant.id} and not exists
        (select from user_groups g where g.tenant_id = m.tenant_id and g.name = m.group_name)`;
    expect(missing).toEqual([]);
    const shown = await Promise.all(ids.map((id) => accounts.getUserAccount({ id })));
    for (const { user } of shown) {
      for (const name of user?.groups ?? []) await groups.getUserGroup({ name });
      expect(user?.groups).not.toContain(names[0]);
    }
  }
  // A group that is gone is the caller's mistake, and nothing else is one.
  expect(Object.keys(seen).filter((code) => code !== "0" && code !== "3")).toEqual([]);
  expect(seen[0]).toBeGreaterThan(2 * rounds);
}, 120_000);
