import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const way = transport(server.target, "grpc", tenant.headers);
const accounts = createClient(UserAccountService, way);
const groups = createClient(UserGroupService, way);
const password = "Correct-horse-7";

test("groups are listed by name, with their roles and filters", async () => {
  for (const name of ["Storage", "Network"]) {
    await groups.createUserGroup({ group: { name, cloudRoles: ["user"], restrictionFilters: ["cz0:Groups/Europe"] } });
  }
  const listed = await groups.listUserGroups({});
  expect(listed.totalCount).toBe(2n);
  expect(listed.groups.map(({ name }) => name)).toEqual(["Network", "Storage"]);
  expect(listed.groups[0]).toMatchObject({
    cloudRoles: ["user", "delegate_to_collection_zone"],
    restrictionFilters: ["cz0:Groups/Europe"],
  });
});

test("accounts are listed by e-mail whatever its case, page by page, without passwords", async () => {
  for (const email of ["Carl@example.com", "ada@example.com", "Bob@example.com"]) {
    await accounts.createUserAccount({
      user: { email, password, groups: email === "Bob@example.com" ? [] : ["Network"] },
    });
  }
  const first = await accounts.listUserAccounts({ pageSize: 2 });
  expect(first.users.map(({ email }) => email)).toEqual(["ada@example.com", "Bob@example.com"]);
  expect(first.totalCount).toBe(3n);
  const second = await accounts.listUserAccounts({ pageSize: 2, pageToken: first.nextPageToken });
  expect(second.users.map(({ email }) => email)).toEqual(["Carl@example.com"]);
  expect(second.nextPageToken).toBe("");
  expect([...first.users, ...second.users].every((user) => user.password === undefined)).toBe(true);
});

test("accounts of one group are listed, and its page token holds for no other group", async () => {
  const members = await accounts.listUserAccounts({ group: "Network", pageSize: 1 });
  expect(members.totalCount).toBe(2n);
  expect(members.users.map(({ email, groups: of }) => [email, of])).toEqual([["ada@example.com", ["Network"]]]);
  await expect(accounts.listUserAccounts({ group: "Storage", pageToken: members.nextPageToken })).rejects.toThrow(
    "pageToken",
  );
  expect((await accounts.listUserAccounts({ group: "nobody" })).users).toEqual([]);
});
