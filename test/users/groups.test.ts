import { createClient } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { accountsPath, groupsPath, password } from "./cases.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const json = v1(server.url, tenant.headers);
const way = transport(server.target, "grpc", tenant.headers);
const groups = createClient(UserGroupService, way);
const accounts = createClient(UserAccountService, way);

const added = "delegate_to_collection_zone";
let made = 0;
let name = "";
let path = "";
beforeEach(() => {
  made += 1;
  name = `team ${made}`;
  path = `${groupsPath}/${encodeURIComponent(name)}`;
});
const stored = async () => (await groups.getUserGroup({ name })).group;

describe("a new group", () => {
  test("answers {}, and shows its roles with the one that the service adds", async () => {
    const body = { name, cloudRoles: ["user", "key_creator", "user"], restrictionFilters: ["cz0:Groups/Europe"] };
    expect(await json("POST", groupsPath, body)).toMatchObject({ status: 200, body: {} });
    const found = { name, cloudRoles: ["user", "key_creator", added], restrictionFilters: ["cz0:Groups/Europe"] };
    expect((await json("GET", path)).body).toEqual(found);
    expect(await stored()).toMatchObject(found);
  });

  test.each([[["read_only_user", "user", "key_creator", "key_administrator", "manager"]], [[added]]])(
    "may have %j",
    async (cloudRoles) => {
      await groups.createUserGroup({ group: { name, cloudRoles } });
      expect((await stored())?.cloudRoles).toEqual([...new Set([...cloudRoles, added])]);
    },
  );

  test.each([
    ["no name", { cloudRoles: ["user"] }, "name: is required"],
    ["an empty name", { name: "", cloudRoles: ["user"] }, "name: is required"],
    [
      "a name of 256 characters",
      { name: "x".repeat(256), cloudRoles: ["user"] },
      "name: must be at most 255 characters",
    ],
    ["a control character", { name: "a\tb", cloudRoles: ["user"] }, "name: must not contain control characters"],
    ["no roles", { name: "x" }, "cloudRoles: is required"],
    ["an empty list of roles", { name: "x", cloudRoles: [] }, "cloudRoles: is required"],
    ["a role's display name", { name: "x", cloudRoles: ["Key Creator"] }, "cloudRoles[0]: must be in list"],
  ])("with %s is refused", async (_what, body, message) => {
    const answer = await json("POST", groupsPath, body);
    expect(answer).toMatchObject({ status: 400, body: { code: 3, message: expect.stringContaining(message) } });
  });

  test("no group at all is refused", async () => {
    await expect(groups.createUserGroup({})).rejects.toMatchObject({ code: 3, rawMessage: "group: is required" });
  });
});

test("is found by an account that writes its name's accents apart", async () => {
  const group = `équipe ${made}`.normalize("NFC");
  await groups.createUserGroup({ group: { name: group, cloudRoles: ["user"] } });
  const user = { email: `nfc${made}@example.com`, password, groups: [group.normalize("NFD"), group] };
  const created = await json("POST", accountsPath, { user });
  expect(created).toMatchObject({ status: 200, body: { user: { groups: [group] } } });
  const put = await json("PUT", `${accountsPath}/${created.body.user.id}`, { groups: [group.normalize("NFD")] });
  expect(put).toMatchObject({ status: 200, body: { user: { groups: [group] } } });
});

describe("a restriction filter", () => {
  test.each([
    "cz0:Groups",
    "cz12:Location/Europe/Rack 7",
    "cz0:Systems/Übersee",
    "cz0:LocationsOld/x",
    "cz0:locations",
  ])("%s is taken as it is", async (filter) => {
    await groups.createUserGroup({ group: { name, cloudRoles: ["user"], restrictionFilters: [filter] } });
    expect((await stored())?.restrictionFilters).toEqual([filter]);
  });

  test.each([
    "",
    "cz:Groups",
    "0:Groups",
    "cz0",
    "cz0:",
    "cz0:/Groups",
    "cz0:Groups/",
    "cz0:Groups//x",
    "CZ0:Groups",
    "cz0:a\nb",
  ])("%j is refused with the form that it must have", async (filter) => {
    const answer = await json("POST", groupsPath, {
      name,
      cloudRoles: ["user"],
      restrictionFilters: ["cz0:x", filter],
    });
    const rule =
      "restrictionFilters[1]: must have the form cz<digits>:<Organizer>/<segment>/..., for example cz0:Groups/Europe";
    expect(answer).toMatchObject({ status: 400, body: { code: 3, message: rule } });
  });

  test.each(["cz0:Locations", "cz3:Locations/Europe"])("%s is refused with a hint", async (filter) => {
    const answer = await json("POST", groupsPath, { name, cloudRoles: ["user"], restrictionFilters: [filter] });
    const message = "restrictionFilters[0]: must call the organizer Location, not Locations";
    expect(answer).toMatchObject({ status: 400, body: { code: 3, message } });
  });
});

describe("a change of a group", () => {
  beforeEach(async () => {
    await groups.createUserGroup({ group: { name, cloudRoles: ["user"], restrictionFilters: ["cz0:Groups/Europe"] } });
  });

  test("makes its roles exactly those sent, and leaves what is not sent", async () => {
    expect(await json("PUT", path, { cloudRoles: ["manager"] })).toMatchObject({ status: 200, body: {} });
    expect(await stored()).toMatchObject({ cloudRoles: ["manager"], restrictionFilters: ["cz0:Groups/Europe"] });
    await json("PUT", path, { cloudRoles: [added, "user"] });
    expect((await stored())?.cloudRoles).toEqual([added, "user"]);
  });

  test("clears its filters when they are sent empty", async () => {
    for (const empty of [[], null]) {
      await json("PUT", path, { restrictionFilters: ["cz0:Groups/Asia"] });
      await json("PUT", path, { restrictionFilters: empty });
      expect(await stored()).toMatchObject({ cloudRoles: ["user", added], restrictionFilters: [] });
    }
  });

  test("with what was got is no change", async () => {
    const got = (await json("GET", path)).body;
    expect((await json("PUT", path, got)).status).toBe(200);
    expect((await json("GET", path)).body).toEqual(got);
  });

  test("cannot clear its roles", async () => {
    for (const cloudRoles of [[], null]) {
      const answer = await json("PUT", path, { cloudRoles });
      expect(answer).toMatchObject({ status: 400, body: { code: 3, message: "cloudRoles: is required" } });
    }
  });

  test("cannot change its name", async () => {
    const answer = await json("PUT", path, { name: "other", cloudRoles: ["user"] });
    expect(answer).toMatchObject({ status: 400, body: { code: 3 } });
    expect(answer.body.details[0].fieldViolations[0].field).toBe("name");
    expect((await json("PUT", `${path}?updateMask=name`, { name })).body).toMatchObject({ code: 3 });
    const masked = groups.updateUserGroup({ group: { name }, updateMask: { paths: ["name"] } });
    await expect(masked).rejects.toMatchObject({ code: 3, rawMessage: expect.stringContaining("cannot be changed") });
  });

  test("over gRPC changes what is set, or what the mask names", async () => {
    await groups.updateUserGroup({ group: { name, restrictionFilters: ["cz1:x"] } });
    expect(await stored()).toMatchObject({ cloudRoles: ["user", added], restrictionFilters: ["cz1:x"] });
    const group = { name, cloudRoles: ["manager"] };
    await groups.updateUserGroup({ group, updateMask: { paths: ["restriction_filters"] } });
    expect(await stored()).toMatchObject({ cloudRoles: ["user", added], restrictionFilters: [] });
    const unknown = groups.updateUserGroup({ group, updateMask: { paths: ["roles"] } });
    await expect(unknown).rejects.toMatchObject({ code: 3, rawMessage: expect.stringContaining("updateMask") });
  });

  test("over gRPC needs the name", async () => {
    const call = groups.updateUserGroup({ group: { cloudRoles: ["user"] } });
    await expect(call).rejects.toMatchObject({ code: 3, rawMessage: "group.name: is required" });
  });
});

test("a deleted group leaves its accounts, which keep the others in their order", async () => {
  for (const each of [`${name} a`, name, `${name} c`]) {
    await groups.createUserGroup({ group: { name: each, cloudRoles: ["user"] } });
  }
  const user = { email: `${made}@example.com`, password, groups: [`${name} c`, name, `${name} a`] };
  const { id } = (await accounts.createUserAccount({ user })).user ?? {};
  expect(await json("DELETE", path)).toMatchObject({ status: 200, body: {} });
  expect((await json("GET", `${accountsPath}/${id}`)).body.user.groups).toEqual([`${name} c`, `${name} a`]);
});

test("names differ in case", async () => {
  await groups.createUserGroup({ group: { name: `${name} A`, cloudRoles: ["user"] } });
  await groups.createUserGroup({ group: { name: `${name} a`, cloudRoles: ["manager"] } });
  expect((await groups.getUserGroup({ name: `${name} A` })).group?.cloudRoles).toEqual(["user", added]);
});

test("a name may hold a slash, a percent sign and any letter", async () => {
  const odd = `${name} a/b %2F ü 😀?`;
  await groups.createUserGroup({ group: { name: odd, cloudRoles: ["user"] } });
  const found = await json("GET", `${groupsPath}/${encodeURIComponent(odd)}`);
  expect(found).toMatchObject({ status: 200, body: { name: odd } });
});
