import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import { userAccountService } from "../../src/users/accounts.ts";
import { userGroupService } from "../../src/users/groups.ts";
import { passwordHasher } from "../../src/users/password.ts";
import type { Reads } from "./reads.ts";

const accounts = 10_000;
const groups = 100;
const groupsEach = 3;

/** One account and one group, of 10,000 accounts in three of 100 groups each. */
export const accountReads: Reads = async (sql, tenantId) => {
  await sql`
    insert into user_groups (tenant_id, name, cloud_roles, restriction_filters)
    select ${tenantId}::uuid, 'group ' || g, '["user", "delegate_to_collection_zone"]', '["cz0:Groups/Europe"]'
    from generate_series(0, ${groups - 1}::int) as g`;
  await sql`
    insert into user_accounts (tenant_id, id, email, password_hash, first_name, last_name, created_ms, updated_ms)
    select ${tenantId}::uuid, 'account-' || a, 'person.' || a || '@example.com', '$argon2id$', 'Ada', 'Number ' || a, 1, 1
    from generate_series(0, ${accounts - 1}::int) as a`;
  await sql`
    insert into user_account_groups (tenant_id, account_id, group_name, place)
    select ${tenantId}::uuid, 'account-' || a, 'group ' || ((a + 7 * g) % ${groups}::int), g
    from generate_series(0, ${accounts - 1}::int) as a, generate_series(0, ${groupsEach - 1}::int) as g`;
  await sql`analyze user_accounts, user_groups, user_account_groups`;
  const id = "account-4711";
  const name = "group 42";
  return {
    services: [
      { service: UserAccountService, implementation: userAccountService(sql, readConfig({}), passwordHasher()) },
      { service: UserGroupService, implementation: userGroupService(sql, readConfig({})) },
    ],
    cases: [
      {
        name: "one account",
        method: UserAccountService.method.getUserAccount,
        request: { id },
        rows: 1,
        statement: () => sql`
          select id, email, first_name as "firstName", last_name as "lastName", created_ms as "createdMs",
            updated_ms as "updatedMs",
            array(
              select group_name from user_account_groups m where m.tenant_id = a.tenant_id and m.account_id = a.id
              order by place
            ) as groups
          from user_accounts a where tenant_id = ${tenantId} and id = ${id}`,
      },
      {
        name: "one group",
        method: UserGroupService.method.getUserGroup,
        request: { name },
        rows: 1,
        statement: () => sql`
          select name, cloud_roles as "cloudRoles", restriction_filters as "restrictionFilters"
          from user_groups where tenant_id = ${tenantId} and name = ${name}`,
      },
    ],
  };
};
