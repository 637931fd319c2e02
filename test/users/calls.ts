import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { after, type Calls, hisOwn, notFound, nothing, type World } from "../support/calls.ts";

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
  "UserAccountService/CreateUserAccount": hisOwn((world) => ({ user: { email: emailOf(world), password } })),
  "UserAccountService/GetUserAccount": notFound(after(account, (id) => ({ id }))),
  "UserAccountService/ListUserAccounts": nothing(after(account)),
  "UserAccountService/UpdateUserAccount": notFound(after(account, (id) => ({ id, user: { lastName: "Lovelace" } }))),
  "UserAccountService/DeleteUserAccount": notFound(after(account, (id) => ({ id }))),
  "UserAccountService/SearchUserAccountIds": {
    ...nothing(after(account, (_, world) => ({ firstName: world.mark }))),
    unmarked: true,
  },
  "UserGroupService/CreateUserGroup": hisOwn(({ mark }) => ({ group: { name: mark, cloudRoles: ["user"] } })),
  "UserGroupService/GetUserGroup": notFound(after(group, (name) => ({ name }))),
  "UserGroupService/ListUserGroups": nothing(after(group)),
  "UserGroupService/UpdateUserGroup": notFound(async (world) => ({
    group: { name: await group(world), cloudRoles: ["manager"] },
  })),
  "UserGroupService/DeleteUserGroup": notFound(after(group, (name) => ({ name }))),
};
