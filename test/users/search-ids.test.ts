import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { idsPath, password } from "./cases.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const json = v1(server.url, tenant.headers);
const accounts = createClient(UserAccountService, transport(server.target, "grpc", tenant.headers));
const idOf = async (user: object) => (await accounts.createUserAccount({ user: { password, ...user } })).user?.id ?? "";

const ada = await idOf({ email: "Ada.Lovelace@Example.com", firstName: "Ada", lastName: "Lovelace" });
const byron = await idOf({ email: "ada.byron@example.com", firstName: "Ada", lastName: "Byron" });
const nameless = await idOf({ email: "Ωmega@example.com" });

const found = async (fields: object) => {
  const flat = await json("POST", idsPath, fields);
  const nested = await json("POST", idsPath, { user: fields });
  expect(flat.status).toBe(200);
  expect(nested.body).toEqual(flat.body);
  expect((await accounts.searchUserAccountIds(fields)).ids).toEqual(flat.body.ids);
  expect((await accounts.searchUserAccountIds({ user: fields })).ids).toEqual(flat.body.ids);
  return flat.body.ids;
};

test("all given fields must match, in whichever form", async () => {
  expect(await found({ firstName: "Ada" })).toEqual([ada, byron].sort());
  expect(await found({ firstName: "Ada", lastName: "Byron" })).toEqual([byron]);
  expect(await found({ email: "ada.byron@example.com", lastName: "Lovelace" })).toEqual([]);
});

test("e-mails match without case, names with it", async () => {
  expect(await found({ email: "ADA.lovelace@EXAMPLE.com" })).toEqual([ada]);
  expect(await found({ email: "ωMEGA@example.com" })).toEqual([nameless]);
  expect(await found({ firstName: "ada" })).toEqual([]);
});

test("only full matches count, and nothing is a pattern", async () => {
  for (const email of ["ada", "ada.byron@example.co", " ada.byron@example.com", "%", "ada_byron@example.com"]) {
    expect(await found({ email })).toEqual([]);
  }
});

test.each([
  [{}, "at least one of email, firstName and lastName must be given"],
  [{ user: {} }, "at least one of email, firstName and lastName must be given"],
  [{ user: null }, "at least one of email, firstName and lastName must be given"],
  [{ email: null }, "at least one of email, firstName and lastName must be given"],
  [{ email: "" }, "email: must not be empty"],
  [{ user: { lastName: "" } }, "user.lastName: must not be empty"],
  [{ user: { email: "a@example.com" }, firstName: "Ada" }, "either in user or beside it"],
  [{ user: {}, firstName: "Ada" }, "either in user or beside it"],
  [{ groups: ["a"] }, "groups"],
])("%j is refused", async (body, message) => {
  const answer = await json("POST", idsPath, body);
  expect(answer).toMatchObject({ status: 400, body: { code: 3, message: expect.stringContaining(message) } });
});
