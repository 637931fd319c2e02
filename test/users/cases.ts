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

const ok = { status: 200, code: 0 };
const missing = { status: 404, code: 5 };
const invalid = (says: Case["says"]) => ({ status: 400, code: 3, ...(says !== undefined && { says }) });
const taken = (says: (made: Made) => string) => ({ status: 409, code: 6, says });
type Outcome = Pick<Case, "status" | "code" | "says">;
type Of<T> = (made: Made) => T;

const account = (id: string) => `${accountsPath}/${id}`;
const group = (name: string) => `${groupsPath}/${encodeURIComponent(name)}`;
const accountCreated = (what: string, user: Of<object>, outcome: Outcome): Case => ({
  what,
  rpc: accountMethods.createUserAccount,
  json: (made) => ["POST", accountsPath, { user: user(made) }],
  message: (made) => ({ user: user(made) }),
  ...outcome,
});
const accountGot = (what: string, id: Of<string>, outcome: Outcome): Case => ({
  what,
  rpc: accountMethods.getUserAccount,
  json: (made) => ["GET", account(id(made))],
  message: (made) => ({ id: id(made) }),
  ...outcome,
});
const accountDeleted = (what: string, id: Of<string>, outcome: Outcome): Case => ({
  ...accountGot(what, id, outcome),
  rpc: accountMethods.deleteUserAccount,
  json: (made) => ["DELETE", account(id(made))],
});
const idsSearched = (what: string, search: Of<object>, outcome: Outcome): Case => ({
  what,
  rpc: accountMethods.searchUserAccountIds,
  json: (made) => ["POST", idsPath, search(made)],
  message: search,
  ...outcome,
});
const groupCreated = (what: string, init: Of<object>, outcome: Outcome): Case => ({
  what,
  rpc: groupMethods.createUserGroup,
  json: (made) => ["POST", groupsPath, init(made)],
  message: (made) => ({ group: init(made) }),
  ...outcome,
});
const groupGot = (what: string, name: Of<string>, outcome: Outcome): Case => ({
  what,
  rpc: groupMethods.getUserGroup,
  json: (made) => ["GET", group(name(made))],
  message: (made) => ({ name: name(made) }),
  ...outcome,
});
const groupDeleted = (what: string, name: Of<string>, outcome: Outcome): Case => ({
  ...groupGot(what, name, outcome),
  rpc: groupMethods.deleteUserGroup,
  json: (made) => ["DELETE", group(name(made))],
});
const groupChanged = (what: string, name: Of<string>, roles: string[], outcome: Outcome): Case => ({
  what,
  rpc: groupMethods.updateUserGroup,
  json: (made) => ["PUT", group(name(made)), { cloudRoles: roles }],
  message: (made) => ({ group: { name: name(made), cloudRoles: roles } }),
  ...outcome,
});
const itsId = ({ id }: Made) => id;
const itsGroup = ({ group }: Made) => group;
const another = ({ other }: Made) => other;

/** Every status code that the API names for accounts and groups, but for those of keys and of unreadable bodies. */
export const cases: Case[] = [
  {
    what: "accounts are listed",
    rpc: accountMethods.listUserAccounts,
    json: ({ group }) => ["GET", `${accountsPath}?group=${encodeURIComponent(group)}`],
    message: ({ group }) => ({ group }),
    ...ok,
  },
  {
    what: "groups are listed",
    rpc: groupMethods.listUserGroups,
    json: () => ["GET", groupsPath],
    message: () => ({}),
    ...ok,
  },
  accountCreated("an account is created", created, ok),
  accountCreated("an account without an e-mail is refused", () => ({ password }), invalid("user.email: is required")),
  accountCreated(
    "an account in a missing group is refused",
    (made) => ({ ...created(made), groups: [made.group, made.other] }),
    invalid(({ other }) => `user.groups[1]: there is no group named "${other}"`),
  ),
  accountCreated(
    "an account whose e-mail is taken, in other case, is refused",
    ({ email }) => ({ email: email.toUpperCase(), password }),
    taken(({ email }) => email.toUpperCase()),
  ),
  accountGot("an account is got", itsId, ok),
  accountGot("an unknown account is not found", () => nobody, missing),
  accountGot("an id of a wrong form is an unknown one", () => "no-id", missing),
  {
    what: "an account is changed",
    rpc: accountMethods.updateUserAccount,
    json: ({ id }) => ["PUT", account(id), { groups: [] }],
    message: ({ id }) => ({ id, user: {}, updateMask: { paths: ["groups"] } }),
    ...ok,
  },
  {
    what: "a change to a missing group is refused",
    rpc: accountMethods.updateUserAccount,
    json: ({ id, other }) => ["PUT", account(id), { user: { groups: [other] } }],
    message: ({ id, other }) => ({ id, user: { groups: [other] } }),
    ...invalid(({ other }) => `user.groups[0]: there is no group named "${other}"`),
  },
  {
    what: "a change of an unknown account is not found",
    rpc: accountMethods.updateUserAccount,
    json: () => ["PUT", account(nobody), { password }],
    message: () => ({ id: nobody, password }),
    ...missing,
  },
  accountDeleted("an account is deleted", itsId, ok),
  accountDeleted("an unknown account cannot be deleted", () => nobody, missing),
  idsSearched("ids are found", ({ email }) => ({ email }), ok),
  idsSearched(
    "an empty search is refused",
    () => ({}),
    invalid("at least one of email, firstName and lastName must be given"),
  ),
  groupCreated("a group is created", named, ok),
  groupCreated(
    "a group with an unknown role is refused",
    ({ other }) => ({ name: other, cloudRoles: ["user", "Manager"] }),
    invalid("cloudRoles[1]: must be in list [read_only_user, user, key_creator, key_administrator, manager,"),
  ),
  groupCreated("a group whose name exists is refused", ({ group }) => ({ name: group, cloudRoles }), taken(itsGroup)),
  groupGot("a group is got", itsGroup, ok),
  groupGot("a missing group is not found", another, missing),
  groupChanged("a group is changed", itsGroup, ["manager"], ok),
  groupChanged(
    "a group's change to an unknown role is refused",
    itsGroup,
    ["root"],
    invalid("cloudRoles[0]: must be in list"),
  ),
  groupChanged("a change of a missing group is not found", another, cloudRoles, missing),
  groupDeleted("a group is deleted", itsGroup, ok),
  groupDeleted("a missing group cannot be deleted", another, {
    ...missing,
    says: ({ other }) => `no user group found for "${other}"`,
  }),
];
