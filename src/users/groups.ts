import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { and, eq, getTableColumns, gt } from "drizzle-orm";
import { UserGroupSchema } from "#gen/belfry/users/v1/user_group_pb.ts";
import {
  CreateUserGroupResponseSchema,
  DeleteUserGroupResponseSchema,
  GetUserGroupResponseSchema,
  ListUserGroupsResponseSchema,
  UpdateUserGroupResponseSchema,
  type UserGroupService,
} from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { checkQuota, type Kept, type QuotaBounds } from "../db/admission-quota.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { keyTextsOf } from "../db/paging/keyset.ts";
import { countedPage } from "../db/paging/token-page.ts";
import { transaction } from "../db/transaction.ts";
import { alreadyExists, notFound } from "../errors.ts";
import { principalOf } from "../rpc/context.ts";
import { changedFields } from "../rpc/update-mask.ts";
import { audited } from "../tenants/audit.ts";
import { toUserGroup } from "./messages.ts";
import { userGroups } from "./tables.ts";

/** The role that every new group gets beside its own. */
const addedRole = "delegate_to_collection_zone";

const distinct = (values: Iterable<string>) => [...new Set(values)];
const named = (tenantId: string, name: string) => and(eq(userGroups.tenantId, tenantId), eq(userGroups.name, name));

const { tenantId: _tenant, ...columns } = getTableColumns(userGroups);

const kept: Kept = { things: "user groups", table: "user_groups", key: "name", columns: ["name"] };

/** The groups that accounts are in. */
export function userGroupService(db: Db, bounds: QuotaBounds): Partial<ServiceImpl<typeof UserGroupService>> {
  return {
    async createUserGroup({ group = create(UserGroupSchema) }, context) {
      const { name, cloudRoles, restrictionFilters } = group;
      const { tenantId } = principalOf(context);
      await transaction(db, async (tx) => {
        const roles = distinct([...cloudRoles, addedRole]);
        const made = await orm(tx)
          .insert(userGroups)
          .values({ tenantId, name, cloudRoles: roles, restrictionFilters: distinct(restrictionFilters) })
          .onConflictDoNothing({ target: [userGroups.tenantId, userGroups.name] })
          .returning({ name: userGroups.name });
        if (made.length === 0) throw alreadyExists("user group", name);
        await checkQuota(tx, tenantId, kept, name, bounds);
        await audited(tx, context, name);
      });
      return create(CreateUserGroupResponseSchema);
    },

    async getUserGroup({ name }, context) {
      const [row] = await orm(db)
        .select(columns)
        .from(userGroups)
        .where(named(principalOf(context).tenantId, name));
      if (row === undefined) throw notFound("user group", name);
      return create(GetUserGroupResponseSchema, { group: toUserGroup(row) });
    },

    async listUserGroups(request, context) {
      const { groups, ...page } = await listGroups(db, principalOf(context).tenantId, request);
      return create(ListUserGroupsResponseSchema, { ...page, groups: groups.map(toUserGroup) });
    },

    async updateUserGroup({ group = create(UserGroupSchema), updateMask }, context) {
      const { name, cloudRoles, restrictionFilters } = group;
      const changed = changedFields(UserGroupSchema, group, updateMask);
      // What does not change is set to itself.
      const values = {
        cloudRoles: changed.has("cloudRoles") ? distinct(cloudRoles) : userGroups.cloudRoles,
        restrictionFilters: changed.has("restrictionFilters")
          ? distinct(restrictionFilters)
          : userGroups.restrictionFilters,
      };
      await transaction(db, async (tx) => {
        const done = await orm(tx)
          .update(userGroups)
          .set(values)
          .where(named(principalOf(context).tenantId, name))
          .returning({ name: userGroups.name });
        if (done.length === 0) throw notFound("user group", name);
        await audited(tx, context, name);
      });
      return create(UpdateUserGroupResponseSchema);
    },

    async deleteUserGroup({ name }, context) {
      await transaction(db, async (tx) => {
        // Its memberships go with it, by their foreign key.
        const gone = await orm(tx)
          .delete(userGroups)
          .where(named(principalOf(context).tenantId, name))
          .returning({ name: userGroups.name });
        if (gone.length === 0) throw notFound("user group", name);
        await audited(tx, context, name);
      });
      return create(DeleteUserGroupResponseSchema);
    },
  };
}

/** Groups by name. @throws code 3 for a bad page token */
async function listGroups(db: Db, tenantId: string, request: { pageSize: number; pageToken: string }) {
  const page = countedPage("user groups", tenantId, request, "");
  const place = page.after && keyTextsOf(page.after, ["text"]);
  const all = eq(userGroups.tenantId, tenantId);
  // By the primary key.
  const [rows, totalCount] = await Promise.all([
    orm(db)
      .select(columns)
      .from(userGroups)
      .where(and(all, place && gt(userGroups.name, place[0] ?? "")))
      .orderBy(userGroups.name)
      .limit(page.rowsMax ?? Number.MAX_SAFE_INTEGER),
    page.total(() => orm(db).$count(userGroups, all)),
  ]);
  const { items, nextPageToken } = page.cut(rows, ({ name }) => [name], totalCount);
  return { groups: items, nextPageToken, totalCount };
}
