import { createClient } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { accountsPath, password } from "./cases.ts";

const server = await testServer();
const { sql } = server.database;
const tenant = await testTenant(sql);
const json = v1(server.url, tenant.headers);
const way = transport(server.target, "grpc", tenant.headers);
const accounts = createClient(UserAccountService, way);
const groups = createClient(UserGroupService, way);
for (const name of ["red", "green", "blue"]) await groups.createUserGroup({ group: { name, cloudRoles: ["user"] } });

let made = 0;
let id = "";
let path = "";
beforeEach(async () => {
  made += 1;
  const user = { email: `ada${made}@example.com`, password, groups: ["red", "green"] };
  id = (await accounts.createUserAccount({ user })).user?.id ?? "";
  path = `${accountsPath}/${id}`;
});

const stored = async () => (await accounts.getUserAccount({ id })).user;
const hash = async () => {
  const [row] = await sql`select password_hash from user_accounts where tenant_id = ${tenant.id} and id = ${id}`;
  return row?.password_hash;
};

describe.each([
  ["at top level", (fields: object) => fields, ""],
  ["in user", (user: object) => ({ user }), "user."],
])("fields %s", (_where, form, prefix) => {
  test("that are sent change, the others stay", async () => {
    const before = await stored();
    const answer = await json("PUT", path, form({ groups: ["blue"] }));
    expect(answer).toMatchObject({ status: 200, body: { user: { id, email: before?.email, groups: ["blue"] } } });
    expect(answer.body.user).not.toHaveProperty("password");
    expect(Date.parse(answer.body.user.updatedAt)).toBeGreaterThan(Number(before?.updatedAt?.seconds) * 1000);
    expect((await json("GET", path)).body).toEqual(answer.body);
    expect((await json("PUT", path, form({ email: `new${made}@example.com` }))).body.user.groups).toEqual(["blue"]);
  });

  test("groups: empty or null clears, absent leaves", async () => {
    expect((await json("PUT", path, form({ lastName: "L" }))).body.user.groups).toEqual(["red", "green"]);
    expect((await json("PUT", path, form({ groups: [] }))).body.user.groups).toEqual([]);
    await json("PUT", path, form({ groups: ["green", "red", "green"] }));
    expect((await stored())?.groups).toEqual(["green", "red"]);
    expect((await json("PUT", path, form({ groups: null }))).body.user.groups).toEqual([]);
  });

  test("nothing sent changes nothing", async () => {
    const before = await stored();
    expect((await json("PUT", path, form({}))).status).toBe(200);
    expect(await stored()).toEqual(before);
  });

  test("what only the service sets is passed over: get, change, put works", async () => {
    const { user } = (await json("GET", path)).body;
    const answer = await json("PUT", path, form({ ...user, lastName: "Lovelace", createdBy: "me", createdAt: null }));
    expect(answer).toMatchObject({ status: 200, body: { user: { ...user, lastName: "Lovelace", updatedAt: {} } } });
  });

  test.each(["firstName", "lastName"])("%s may be set once", async (name) => {
    expect((await json("PUT", path, form({ [name]: "" }))).status).toBe(200);
    expect((await json("PUT", path, form({ [name]: "Ada" }))).body.user[name]).toBe("Ada");
    expect((await json("PUT", path, form({ [name]: "Ada" }))).status).toBe(200);
    for (const other of ["ada", "", null]) {
      const answer = await json("PUT", path, form({ [name]: other }));
      expect(answer).toMatchObject({ status: 400, body: { code: 3 } });
      expect(answer.body.message).toBe(`${prefix}${name}: cannot be changed once it is set`);
    }
  });

  test.each(["email", "password"])("%s cannot be cleared", async (name) => {
    const answer = await json("PUT", path, form({ [name]: null }));
    expect(answer).toMatchObject({ status: 400, body: { code: 3, message: `${prefix}${name}: is required` } });
  });

  test("a password changes its hash and nothing else", async () => {
    const before = await hash();
    const { user } = (await json("PUT", path, form({ password: "Another-1-horse" }))).body;
    expect(user).toMatchObject({ email: `ada${made}@example.com`, groups: ["red", "green"] });
    expect(await hash()).not.toBe(before);
  });

  test("an e-mail that another account has is taken; its own in other case is not", async () => {
    await accounts.createUserAccount({ user: { email: `grace${made}@example.com`, password } });
    const taken = await json("PUT", path, form({ email: `Grace${made}@example.com` }));
    expect(taken).toMatchObject({ status: 409, body: { code: 6 } });
    const own = await json("PUT", path, form({ email: `ADA${made}@example.com` }));
    expect(own).toMatchObject({ status: 200, body: { user: { email: `ADA${made}@example.com` } } });
  });

  test("an e-mail that an account of another tenant has is free", async () => {
    const user = { email: `alan${made}@example.com`, password };
    const { headers } = await testTenant(sql);
    await createClient(UserAccountService, transport(server.target, "grpc", headers)).createUserAccount({ user });
    expect((await json("PUT", path, form({ email: user.email }))).status).toBe(200);
  });

  test("a group that does not exist is named, and nothing of the request is done", async () => {
    const before = await stored();
    const answer = await json("PUT", path, form({ lastName: "L", groups: ["red", "no", "nor"] }));
    expect(answer).toMatchObject({ status: 400, body: { code: 3 } });
    const fields = answer.body.details[0].fieldViolations.map(({ field }: { field: string }) => field);
    expect(fields).toEqual([`${prefix}groups[1]`, `${prefix}groups[2]`]);
    expect(await stored()).toEqual(before);
  });
});

describe("both forms at once are refused", () => {
  test.each([
    { user: { groups: ["red"] }, groups: ["blue"] },
    { user: { groups: ["red"] }, lastName: null },
    { user: { lastName: "L" }, email: "x@example.com" },
    { user: {}, password: "Another-1-horse" },
  ])("%j", async (body) => {
    const before = await stored();
    expect(await json("PUT", path, body)).toMatchObject({ status: 400, body: { code: 3 } });
    expect(await stored()).toEqual(before);
  });
});

describe("a mask", () => {
  const mask = (...paths: string[]) => ({ updateMask: { paths } });

  test("that is absent or empty over gRPC means the fields that are set", async () => {
    for (const updateMask of [undefined, { paths: [] }]) {
      const request = { id, user: { lastName: "L", groups: [] }, ...(updateMask && { updateMask }) };
      expect((await accounts.updateUserAccount(request)).user).toMatchObject({
        lastName: "L",
        groups: ["red", "green"],
      });
    }
    expect((await accounts.updateUserAccount({ id, groups: ["blue"] })).user?.groups).toEqual(["blue"]);
  });

  test.each([
    ["relative to the account", "groups"],
    ["with user before it", "user.groups"],
  ])("says what changes, %s", async (_how, named) => {
    const request = { id, user: { lastName: "L", groups: [] }, ...mask(named) };
    expect((await accounts.updateUserAccount(request)).user).toMatchObject({ lastName: "", groups: [] });
  });

  test("says what changes among the fields beside user", async () => {
    const request = { id, lastName: "L", groups: ["blue"], ...mask("last_name") };
    expect((await accounts.updateUserAccount(request)).user).toMatchObject({ lastName: "L", groups: ["red", "green"] });
  });

  test("of what only the service sets changes nothing", async () => {
    const before = await stored();
    await accounts.updateUserAccount({ id, user: { createdBy: "me" }, ...mask("created_by", "id") });
    expect(await stored()).toEqual(before);
  });

  test.each(["nothing", "user", "groups.name", "user.nothing", "*", ""])("of unknown %j is refused", async (name) => {
    const call = accounts.updateUserAccount({ id, user: { groups: [] }, ...mask(name) });
    await expect(call).rejects.toMatchObject({ code: 3, rawMessage: expect.stringContaining("updateMask") });
  });

  test("of a required field that is not set is refused", async () => {
    for (const name of ["email", "password", "user.email"]) {
      const call = accounts.updateUserAccount({ id, user: { lastName: "L" }, ...mask(name) });
      await expect(call).rejects.toMatchObject({ code: 3, rawMessage: expect.stringContaining("is required") });
    }
    const call = accounts.updateUserAccount({ id, lastName: "L", ...mask("email") });
    await expect(call).rejects.toMatchObject({ code: 3, rawMessage: "email: is required" });
  });

  test("may come in the query and in the body over /v1", async () => {
    const user = { lastName: "L", groups: [] };
    const byQuery = await json("PUT", `${path}?updateMask=lastName`, { user });
    expect(byQuery.body.user).toMatchObject({ lastName: "L", groups: ["red", "green"] });
    const byBody = await json("PUT", path, { user, updateMask: "groups" });
    expect(byBody.body.user).toMatchObject({ groups: [] });
    expect(await json("PUT", `${path}?updateMask=nothing`, { user })).toMatchObject({ status: 400, body: { code: 3 } });
  });
});
