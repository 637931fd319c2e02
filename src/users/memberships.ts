import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { invalidFields } from "../errors.ts";

/**
 * Puts an account into exactly these groups, in the caller's transaction, and answers them; a name that stands twice counts
 * once. The account's row is locked or new, so that nobody else does this to it meanwhile.
 * @throws code 3 below `path` that names each group which does not exist
 */
export async function setGroups(
  tx: Db,
  tenantId: string,
  accountId: string,
  names: readonly string[],
  path: string,
): Promise<string[]> {
  const wanted = [...new Set(names)];
  if (wanted.length > 0) await holdGroups(tx, tenantId, names, path);
  await tx`delete from user_account_groups where tenant_id = ${tenantId} and account_id = ${accountId}`;
  if (wanted.length === 0) return [];
  await tx`
    insert into user_account_groups (tenant_id, account_id, group_name, place)
    select ${tenantId}::uuid, ${accountId}, name, place - 1
    from unnest(${textArray(wanted)}::text[]) with ordinality as wanted (name, place)`;
  return wanted;
}

/** Keeps groups from being deleted until the transaction ends; whoever deletes one waits, or has done so and it is missing. */
async function holdGroups(tx: Db, tenantId: string, names: readonly string[], path: string) {
  // In order, and before any row of theirs is touched: no two transactions wait for each other in a circle.
  const held = await tx<{ name: string }[]>`
    select name from user_groups
    where tenant_id = ${tenantId} and name = any(${textArray(names)}::text[])
    order by name for key share`;
  const found = new Set(held.map(({ name }) => name));
  const missing = names.flatMap((name, i) =>
    found.has(name) ? [] : [{ path: `${path}[${i}]`, rule: `there is no group named ${JSON.stringify(name)}` }],
  );
  if (missing.length > 0) throw invalidFields(missing);
}
