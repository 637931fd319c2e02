import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type UserAccount, UserAccountSchema } from "#gen/belfry/users/v1/user_account_pb.ts";
import { type UserGroup, UserGroupSchema } from "#gen/belfry/users/v1/user_group_pb.ts";

/** An account as it is stored, without its password's hash. */
export interface AccountRow {
  id: string;
  email: string;
  firstName: string;
  lastName: string;
  createdMs: bigint;
  updatedMs: bigint;
  groups: string[];
}

/** A group as it is stored. */
export interface GroupRow {
  name: string;
  cloudRoles: string[];
  restrictionFilters: string[];
}

/** An account as the API shows it. */
export function toUserAccount({ createdMs, updatedMs, ...account }: AccountRow): UserAccount {
  return create(UserAccountSchema, {
    ...account,
    createdAt: timestampFromMs(Number(createdMs)),
    createdBy: "unknown",
    updatedAt: timestampFromMs(Number(updatedMs)),
  });
}

/** A group as the API shows it. */
export function toUserGroup(group: GroupRow): UserGroup {
  return create(UserGroupSchema, group);
}
