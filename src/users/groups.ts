import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { UserGroupSchema } from "#gen/belfry/users/v1/user_group_pb.ts";
import {
  CreateUserGroupResponseSchema,
  DeleteUserGroupResponseSchema,
  GetUserGroupResponseSchema,
  UpdateUserGroupResponseSchema,
  type UserGroupService,
} from "#gen/belfry/users/v1/user_group_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { alreadyExists, notFound } from "../errors.ts";
import { principalOf } from "../rpc/context.ts";
import { changedFields } from "../rpc/update-mask.ts";
import { audited } from "../tenants/audit.ts";
import { type GroupRow, toUserGroup } from "./messages.ts";

/** The role that every new group gets beside its own. */
const addedRole = "delegate_to_collection_zone";

const jsonList = (values: Iterable<string>) => JSON.stringify([...new Set(values)]);

/** The groups that accounts are in. */
export function userGroupService(db: Db): Partial<ServiceImpl<typeof UserGroupService>> {
  return {
    async createUserGroup({ group = create(UserGroupSchema) }, context) {
      const { name, cloudRoles, restrictionFilters } = group;
      const { tenantId } = principalOf(context);
      await transaction(db, async (tx) => {
        const made = await tx`
          insert into user_groups (tenant_id, name, cloud_roles, restriction_filters)
          values (${tenantId}, ${name}, ${jsonList([...cloudRoles, addedRole])}, ${jsonList(restrictionFilters)})
          on conflict (tenant_id, name) do nothing`;
        if (made.count === 0) throw alreadyExists("user group", name);
        await audited(tx, context, name);
      });
      return create(CreateUserGroupResponseSchema);
    },

    async getUserGroup({ name }, context) {
      const [row] = await db<GroupRow[]>`
        select name, cloud_roles as "cloudRoles", restriction_filters as "restrictionFilters"
        from user_groups where tenant_id = ${principalOf(context).tenantId} and name = ${name}`;
      if (row === undefined) throw notFound("user group", name);
      return create(GetUserGroupResponseSchema, { group: toUserGroup(row) });
    },

    async updateUserGroup({ group = create(UserGroupSchema), updateMask }, context) {
      const { name, cloudRoles, restrictionFilters } = group;
      const changed = changedFields(UserGroupSchema, group, updateMask);
      const roles = changed.has("cloudRoles") ? jsonList(cloudRoles) : null;
      const filters = changed.has("restrictionFilters") ? jsonList(restrictionFilters) : null;
      await transaction(db, async (tx) => {
        const done = await tx`
          update user_groups
          set cloud_roles = coalesce(${roles}::jsonb, cloud_roles),
            restriction_filters = coalesce(${filters}::jsonb, restriction_filters)
          where tenant_id = ${principalOf(context).tenantId} and name = ${name}`;
        if (done.count === 0) throw notFound("user group", name);
        await audited(tx, context, name);
      });
      return create(UpdateUserGroupResponseSchema);
    },

    async deleteUserGroup({ name }, context) {
      await transaction(db, async (tx) => {
        // Its memberships go with it, by their foreign key.
        const gone = await tx`
          delete from user_groups where tenant_id = ${principalOf(context).tenantId} and name = ${name}`;
        if (gone.count === 0) throw notFound("user group", name);
        await audited(tx, context, name);
      });
      return create(DeleteUserGroupResponseSchema);
    },
  };
}
