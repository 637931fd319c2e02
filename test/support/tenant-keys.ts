import { is } from "drizzle-orm";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";

/**
 * Keys of the tables among the exports of a module that do not begin with the tenant.
 * A table of `exceptions` is passed over, and named when it needs no exception.
 */
export function keysWithoutTenant(module: object, exceptions: Readonly<Record<string, string>>): string[] {
  return Object.values(module).flatMap((table) => {
    if (!is(table, PgTable)) return [];
    const { name } = getTableConfig(table);
    const found = keysOf(table).filter(({ columns }) => columns[0] !== "tenant_id");
    if (name in exceptions) return found.length > 0 ? [] : [`${name} needs no exception any more`];
    return found.map(({ kind, columns }) => `${name}: ${kind} (${columns.join(", ")})`);
  });
}

function keysOf(table: PgTable): { kind: string; columns: string[] }[] {
  const { columns, primaryKeys, uniqueConstraints, indexes, foreignKeys } = getTableConfig(table);
  const names = (list: readonly { name: string }[]) => list.map((column) => column.name);
  const primary = columns.filter((column) => column.primary);
  return [
    ...(primary.length > 0 ? [{ kind: "primary key", columns: names(primary) }] : []),
    ...primaryKeys.map((key) => ({ kind: "primary key", columns: names(key.columns) })),
    ...columns.filter((column) => column.isUnique).map((column) => ({ kind: "unique", columns: [column.name] })),
    ...uniqueConstraints.map((key) => ({ kind: "unique", columns: names(key.columns) })),
    ...indexes
      .filter((index) => index.config.unique)
      .map((index) => ({
        kind: "unique index",
        columns: index.config.columns.map((column) => ("name" in column ? String(column.name) : "(expression)")),
      })),
    ...foreignKeys.flatMap((key) => {
      const { columns: from, foreignColumns: to, foreignTable } = key.reference();
      const ends = [{ kind: "foreign key", columns: names(from) }];
      // The tenants' own key is the tenant.
      if (getTableConfig(foreignTable).name !== "tenants") ends.push({ kind: "foreign key to", columns: names(to) });
      return ends;
    }),
  ];
}
