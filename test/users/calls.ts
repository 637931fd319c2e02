import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import type { Calls, World } from "../support/calls.ts";

const password = "Correct-horse-7";
const emailOf = ({ mark }: World) => `${mark}@example.com`;

async function group({ client, mark }: World): Promise<string> {
  await client(UserGroupService).createUserGroup({ group: { name: mark, cloudRoles: ["user"] } });
  return mark;
}

async function account(world: World): Promise<string> {
  const groups = [await group(world)];
  const { user } = await world.client(UserAccountService).createUserAccount({
    user: { email: emailOf(world), password, firstName: world.mark, groups },
  });
  return user?.id ?? "";
}

export const calls: Calls = {
  "UserAccountService/CreateUserAccount": {
    request: (world) => ({ user: { email: emailOf(world), password } }),
    elsewhere: "his own",
  },
  "UserAccountService/GetUserAccount": {
    request: async (world) => ({ id: await account(world) }),
    elsewhere: "not found",
  },
  "UserAccountService/ListUserAccounts": {
    request: async (world) => {
      await account(world);
      return {};
    },
    elsewhere: "nothing",
  },
  "UserAccountService/UpdateUserAccount": {
    request: async (world) => ({ id: await account(world), user: { lastName: "Lovelace" } }),
    elsewhere: "not found",
  },
  "UserAccountService/DeleteUserAccount": {
    request: async (world) => ({ id: await account(world) }),
    elsewhere: "not found",
  },
  "UserAccountService/SearchUserAccountIds": {
    request: async (world) => {
      await account(world);
      return { firstName: world.mark };
    },
    elsewhere: "nothing",
    unmarked: true,
  },
  "UserGroupService/CreateUserGroup": {
    request: ({ mark }) => ({ group: { name: mark, cloudRoles: ["user"] } }),
    elsewhere: "his own",
  },
  "UserGroupService/GetUserGroup": {
    request: async (world) => ({ name: await group(world) }),
    elsewhere: "not found",
  },
  "UserGroupService/ListUserGroups": {
    request: async (world) => {
      await group(world);
      return {};
    },
    elsewhere: "nothing",
  },
  "UserGroupService/UpdateUserGroup": {
    request: async (world) => ({ group: { name: await group(world), cloudRoles: ["manager"] } }),
    elsewhere: "not found",
  },
  "UserGroupService/DeleteUserGroup": {
    request: async (world) => ({ name: await group(world) }),
    elsewhere: "not found",
  },
};
