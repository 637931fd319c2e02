import { and, eq, sql } from "drizzle-orm";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { invalidFields } from "../errors.ts";
import { normalizedName } from "../rpc/name-rules.ts";
import { userAccountGroups, userGroups } from "./tables.ts";

/**
 * Puts an account into exactly these groups, in the caller's transaction, and answers them; a name that stands twice counts
 * once. The account's row is locked or new, so that no other transaction does this to it meanwhile.
 * @throws code 3 below `path` that names each group which does not exist
 */
export async function setGroups(
  tx: Db,
  tenantId: string,
  accountId: string,
  names: readonly string[],
  path: string,
): Promise<string[]> {
  const asked = names.map(normalizedName);
  const wanted = [...new Set(asked)];
  if (wanted.length > 0) await holdGroups(tx, tenantId, asked, path);
  const own = and(eq(userAccountGroups.tenantId, tenantId), eq(userAccountGroups.accountId, accountId));
  await orm(tx).delete(userAccountGroups).where(own);
  const rows = wanted.map((groupName, place) => ({ tenantId, accountId, groupName, place }));
  if (rows.length > 0) await orm(tx).insert(userAccountGroups).values(rows);
  return wanted;
}

/** Keeps groups from being deleted until the transaction ends: a deletion at the same time waits, or has been first. */
async function holdGroups(tx: Db, tenantId: string, names: readonly string[], path: string) {
  // In order, and before any of their rows is locked, so that no deadlock is possible.
  const held = await orm(tx)
    .select({ name: userGroups.name })
    .from(userGroups)
    .where(and(eq(userGroups.tenantId, tenantId), sql`${userGroups.name} = any(${textArray(names)}::text[])`))
    .orderBy(userGroups.name)
    .for("key share");
  const found = new Set(held.map(({ name }) => name));
  const missing = names.flatMap((name, i) =>
    found.has(name)
      ? []
      : [
          {
            path: `${path}[${i}]`,
            rule: `there is no group named ${JSON.stringify(name)}`,
            id: FieldRule.UNKNOWN_NAME,
          },
        ],
  );
  if (missing.length > 0) throw invalidFields(missing);
}
