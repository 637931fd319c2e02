import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";

const accountMethods = UserAccountService.method;
const groupMethods = UserGroupService.method;
export type Method =
  | (typeof accountMethods)[keyof typeof accountMethods]
  | (typeof groupMethods)[keyof typeof groupMethods];

export const accountsPath = "/v1/user-mgmt/end-user-accounts";
export const idsPath = "/v1/user-mgmt/end-user-account-ids";
export const groupsPath = "/v1/user-mgmt/end-user-groups";
export const password = "Correct-horse-7";
export const cloudRoles = ["user"];

/** A group and an account in it, new for each call. */
export interface Made {
  email: string;
  id: string;
  group: string;
  /** A name that nothing has. */
  other: string;
}

/** One outcome of an RPC, over every protocol. */
export interface Case {
  what: string;
  rpc: Method;
  /** Method, path and body over /v1. */
  json(made: Made): [string, string, unknown?];
  message(made: Made): object;
  status: number;
  code: number;
  /** Part of the message. */
  says?: string | ((made: Made) => string);
}

const nobody = "01999999-9999-7999-8999-999999999999";
const named = ({ other }: Made) => ({ name: other, cloudRoles });
const created = ({ other }: Made) => ({ email: `${other.replace(" ", ".")}@example.com`, password });

/** Every status code that the API names for accounts and groups, but for those of keys and of unreadable bodies. */
export const cases: Case[] = [
  {
    what: "accounts are listed",
    rpc: accountMethods.listUserAccounts,
    json: ({ group }) => ["GET", `${accountsPath}?group=${encodeURIComponent(group)}`],
    message: ({ group }) => ({ group }),
    status: 200,
    code: 0,
  },
  {
    what: "groups are listed",
    rpc: groupMethods.listUserGroups,
    json: () => ["GET", groupsPath],
    message: () => ({}),
    status: 200,
    code: 0,
  },
  {
    what: "an account is created",
    rpc: accountMethods.createUserAccount,
    json: (made) => ["POST", accountsPath, { user: created(made) }],
    message: (made) => ({ user: created(made) }),
    status: 200,
    code: 0,
  },
  {
    what: "an account without an e-mail is refused",
    rpc: accountMethods.createUserAccount,
    json: () => ["POST", accountsPath, { user: { password } }],
    message: () => ({ user: { password } }),
    status: 400,
    code: 3,
    says: "user.email: is required",
  },
  {
    what: "an account in a missing group is refused",
    rpc: accountMethods.createUserAccount,
    json: (made) => ["POST", accountsPath, { user: { ...created(made), groups: [made.group, made.other] } }],
    message: (made) => ({ user: { ...created(made), groups: [made.group, made.other] } }),
    status: 400,
    code: 3,
    says: ({ other }) => `user.groups[1]: there is no group named "${other}"`,
  },
  {
    what: "an account whose e-mail is taken, in other case, is refused",
    rpc: accountMethods.createUserAccount,
    json: ({ email }) => ["POST", accountsPath, { user: { email: email.toUpperCase(), password } }],
    message: ({ email }) => ({ user: { email: email.toUpperCase(), password } }),
    status: 409,
    code: 6,
    says: ({ email }) => email.toUpperCase(),
  },
  {
    what: "an account is got",
    rpc: accountMethods.getUserAccount,
    json: ({ id }) => ["GET", `${accountsPath}/${id}`],
    message: ({ id }) => ({ id }),
    status: 200,
    code: 0,
  },
  {
    what: "an unknown account is not found",
    rpc: accountMethods.getUserAccount,
    json: () => ["GET", `${accountsPath}/${nobody}`],
    message: () => ({ id: nobody }),
    status: 404,
    code: 5,
  },
  {
    what: "an id of a wrong form is an unknown one",
    rpc: accountMethods.getUserAccount,
    json: () => ["GET", `${accountsPath}/no-id`],
    message: () => ({ id: "no-id" }),
    status: 404,
    code: 5,
  },
  {
    what: "an account is changed",
    rpc: accountMethods.updateUserAccount,
    json: ({ id }) => ["PUT", `${accountsPath}/${id}`, { groups: [] }],
    message: ({ id }) => ({ id, user: {}, updateMask: { paths: ["groups"] } }),
    status: 200,
    code: 0,
  },
  {
    what: "a change to a missing group is refused",
    rpc: accountMethods.updateUserAccount,
    json: ({ id, other }) => ["PUT", `${accountsPath}/${id}`, { user: { groups: [other] } }],
    message: ({ id, other }) => ({ id, user: { groups: [other] } }),
    status: 400,
    code: 3,
    says: ({ other }) => `user.groups[0]: there is no group named "${other}"`,
  },
  {
    what: "a change of an unknown account is not found",
    rpc: accountMethods.updateUserAccount,
    json: () => ["PUT", `${accountsPath}/${nobody}`, { password }],
    message: () => ({ id: nobody, password }),
    status: 404,
    code: 5,
  },
  {
    what: "an account is deleted",
    rpc: accountMethods.deleteUserAccount,
    json: ({ id }) => ["DELETE", `${accountsPath}/${id}`],
    message: ({ id }) => ({ id }),
    status: 200,
    code: 0,
  },
  {
    what: "an unknown account cannot be deleted",
    rpc: accountMethods.deleteUserAccount,
    json: () => ["DELETE", `${accountsPath}/${nobody}`],
    message: () => ({ id: nobody }),
    status: 404,
    code: 5,
  },
  {
    what: "ids are found",
    rpc: accountMethods.searchUserAccountIds,
    json: ({ email }) => ["POST", idsPath, { email }],
    message: ({ email }) => ({ email }),
    status: 200,
    code: 0,
  },
  {
    what: "an empty search is refused",
    rpc: accountMethods.searchUserAccountIds,
    json: () => ["POST", idsPath, {}],
    message: () => ({}),
    status: 400,
    code: 3,
    says: "at least one of email, firstName and lastName must be given",
  },
  {
    what: "a group is created",
    rpc: groupMethods.createUserGroup,
    json: (made) => ["POST", groupsPath, named(made)],
    message: (made) => ({ group: named(made) }),
    status: 200,
    code: 0,
  },
  {
    what: "a group with an unknown role is refused",
    rpc: groupMethods.createUserGroup,
    json: ({ other }) => ["POST", groupsPath, { name: other, cloudRoles: ["user", "Manager"] }],
    message: ({ other }) => ({ group: { name: other, cloudRoles: ["user", "Manager"] } }),
    status: 400,
    code: 3,
    says: "cloudRoles[1]: must be in list [read_only_user, user, key_creator, key_administrator, manager,",
  },
  {
    what: "a group whose name exists is refused",
    rpc: groupMethods.createUserGroup,
    json: ({ group }) => ["POST", groupsPath, { name: group, cloudRoles }],
    message: ({ group }) => ({ group: { name: group, cloudRoles } }),
    status: 409,
    code: 6,
    says: ({ group }) => group,
  },
  {
    what: "a group is got",
    rpc: groupMethods.getUserGroup,
    json: ({ group }) => ["GET", `${groupsPath}/${encodeURIComponent(group)}`],
    message: ({ group }) => ({ name: group }),
    status: 200,
    code: 0,
  },
  {
    what: "a missing group is not found",
    rpc: groupMethods.getUserGroup,
    json: ({ other }) => ["GET", `${groupsPath}/${encodeURIComponent(other)}`],
    message: ({ other }) => ({ name: other }),
    status: 404,
    code: 5,
  },
  {
    what: "a group is changed",
    rpc: groupMethods.updateUserGroup,
    json: ({ group }) => ["PUT", `${groupsPath}/${encodeURIComponent(group)}`, { cloudRoles: ["manager"] }],
    message: ({ group }) => ({ group: { name: group, cloudRoles: ["manager"] } }),
    status: 200,
    code: 0,
  },
  {
    what: "a group's change to an unknown role is refused",
    rpc: groupMethods.updateUserGroup,
    json: ({ group }) => ["PUT", `${groupsPath}/${encodeURIComponent(group)}`, { cloudRoles: ["root"] }],
    message: ({ group }) => ({ group: { name: group, cloudRoles: ["root"] } }),
    status: 400,
    code: 3,
    says: "cloudRoles[0]: must be in list",
  },
  {
    what: "a change of a missing group is not found",
    rpc: groupMethods.updateUserGroup,
    json: ({ other }) => ["PUT", `${groupsPath}/${encodeURIComponent(other)}`, { cloudRoles }],
    message: ({ other }) => ({ group: { name: other, cloudRoles } }),
    status: 404,
    code: 5,
  },
  {
    what: "a group is deleted",
    rpc: groupMethods.deleteUserGroup,
    json: ({ group }) => ["DELETE", `${groupsPath}/${encodeURIComponent(group)}`],
    message: ({ group }) => ({ name: group }),
    status: 200,
    code: 0,
  },
  {
    what: "a missing group cannot be deleted",
    rpc: groupMethods.deleteUserGroup,
    json: ({ other }) => ["DELETE", `${groupsPath}/${encodeURIComponent(other)}`],
    message: ({ other }) => ({ name: other }),
    status: 404,
    code: 5,
    says: ({ other }) => `no user group found for "${other}"`,
  },
];
