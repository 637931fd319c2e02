import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { importFrom } from "../../src/backup/import.ts";
import { tablesToCopy } from "../../src/backup/tables.ts";
import { knownMigrations } from "../../src/db/migrate.ts";
import { StartError } from "../../src/db/start-error.ts";
import { version } from "../../src/version.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";

const dir = temporaryDir();
const { url, sql } = await testDatabase();
const tables = await tablesToCopy(sql);
const dayMs = 86_400_000;

interface Parts {
  header?: object;
  /** Lines and rows of one table, in the place of those of an empty one. */
  tables?: Record<string, string | undefined>;
  closing?: object;
}

const head = (table: string, more: object = {}) => {
  const { columns } = tables.find((each) => each.table === table) ?? expect.fail(table);
  return `${JSON.stringify({ table, columns, ...more })}\n`;
};
const tenantRow = "00000000-0000-4000-8000-000000000001\tnorth\t0";

/** A file whose last line is right, whatever else is not. */
function file({ header, tables: given = {}, closing }: Parts): string {
  const first = { form: "belfry export", formVersion: 1, version, migrations: knownMigrations() };
  const lines = [`${JSON.stringify({ ...first, takenAt: "2026-01-01T00:00:00.000Z", ...header })}\n`];
  const rows: Record<string, number> = {};
  for (const { table } of tables) {
    const text = table in given ? given[table] : `${head(table)}\\.\n`;
    if (text === undefined) continue;
    lines.push(text);
    rows[table] = text.split("\n").length - 3;
  }
  const body = lines.join("");
  const sha256 = createHash("sha256").update(body).digest("hex");
  const path = join(dir, `tampered-${Math.random()}`);
  writeFileSync(path, zstdCompressSync(`${body}${JSON.stringify({ rows, sha256, ...closing })}\n`));
  return path;
}

const of = (text: string): Parts => ({ tables: { tenants: text } });
const chunks = (partitions: unknown): Parts => ({
  tables: { metric_chunks: `${head("metric_chunks", { partitions })}\\.\n` },
});
const day = (name: string, fromMs: unknown = 20_000 * dayMs, toMs: unknown = 20_001 * dayMs) => [
  { name, fromMs, toMs },
];
const right = "metric_chunks_20241004";

test("a file that is as it should be is imported: the others differ from it in one thing", async () => {
  const partitioned = await testDatabase();
  const whole = file({
    tables: { ...of(`${head("tenants")}${tenantRow}\n\\.\n`).tables, ...chunks(day(right)).tables },
  });
  const { rows } = await importFrom(partitioned.url, whole, version, async () => {});
  expect(rows).toMatchObject({ tenants: 1, metric_chunks: 0, tenant_state: 0 });
  // A tenant that came without its row of state has one: what it sends is stored.
  const [id = ""] = tenantRow.split("\t");
  const made = await partitioned.sql`select tenant_id from tenant_state where tenant_id = ${id}`;
  expect(made).toHaveLength(1);
  await partitioned.drop();
});

test.each<[what: string, parts: Parts, message: RegExp]>([
  ["its columns are one text", of(head("tenants", { columns: "id,name,created_ms" })), /a table tenants that/],
  [
    "two columns are joined into one name",
    of(head("tenants", { columns: ["id,name", "created_ms"] })),
    /a table tenants/,
  ],
  [
    "a column's name is SQL",
    of(head("tenants", { columns: ["id\") from program 'touch /tmp/x' --", "name", "created_ms"] })),
    /a table tenants that/,
  ],
  ["it has a table of another schema", of(head("tenants", { table: "pg_catalog.pg_authid" })), /a table pg_catalog/],
  ["a table's name is an object", of(head("tenants", { table: { toString: 1 } })), /not a whole export/],
  ["a table's name is __proto__", of(head("tenants", { table: "__proto__" })), /a table __proto__ that/],
  ["it has a table twice", of(`${head("tenants")}\\.\n${head("tenants")}\\.\n`), /the table tenants twice/],
  ["a table is missing", { tables: { tenants: undefined } }, /its table tenants is missing/],
  ["a partition has the name of a table", chunks(day("tenants")), /partitions that no server makes/],
  ["a partition's name is SQL", chunks(day('x" partition of tenants --')), /partitions that no server makes/],
  ["a partition's bound is SQL", chunks(day(right, "0) to (1); drop table tenants; --")), /partitions that no/],
  ["a partition begins within a day", chunks(day(right, 20_000.5 * dayMs, 20_001.5 * dayMs)), /partitions that no/],
  ["a partition is as wide as time", chunks(day(right, 0, 1e15)), /partitions that no server makes/],
  ["a table without partitions has some", of(`${head("tenants", { partitions: day("x") })}\\.\n`), /partitions that/],
  ["a row is missing that was counted", of(`${head("tenants")}\\.\n`), /./],
  ["its rows end in the middle", of(`${head("tenants")}${tenantRow}\n\\.\r\n${tenantRow}\n\\.\n`), /no export does/],
  ["an end stands within a row", of(`${head("tenants")}${tenantRow}\\.\n\\.\n`), /import failed \(/],
  ["a row has bytes that are no text", of(`${head("tenants")}${tenantRow.replace("north", "\0")}\n\\.\n`), /failed \(/],
  [
    "a value obeys a terminal",
    of(`${head("tenants")}${tenantRow.replace("\t0", "\t\x1b[2Jx\\ny")}\n\\.\n`),
    /failed \(invalid input syntax for type bigint: "\\u001b\[2Jx\\ny"\)/,
  ],
  ["a version obeys a terminal", { header: { formVersion: 2, version: "1\n\x1b[2J" } }, /Belfry 1\\n\\u001b\[2J;/],
  ["its moment is something else", { header: { takenAt: "soon\nafter" } }, /first line cannot be read/],
  ["its migrations are no list", { header: { migrations: { length: 1 } } }, /first line cannot be read/],
  ["a migration is null", { header: { migrations: [null] } }, /first line cannot be read/],
  ["a line has no end", of(`{"table":"${"a".repeat(20 << 20)}`), /a line has no end/],
  ["a line is nested deeply", of(`${"[".repeat(8 << 20)}\n`), /cannot be read/],
  ["a row has no end", of(`${head("tenants")}${"a".repeat(20 << 20)}`), /not a whole export|import failed/],
])("is refused in one line, and no row stays, when %s", async (what, parts, message) => {
  const closing = what.startsWith("a row is missing") ? { rows: { tenants: 1 } } : undefined;
  const refused = await importFrom(url, file({ ...parts, ...(closing && { closing }) }), version, async () => {}).then(
    () => expect.fail("imported"),
    (error) => error,
  );
  expect(refused).toBeInstanceOf(StartError);
  expect(refused.message).toMatch(message);
  expect(refused.message).toMatch(/^[\x20-\x7e]{1,600}; nothing was imported$/);
  const found = await sql.unsafe(
    `select sum(found)::int4 as found from (${tables.map(({ table }) => `select count(*) as found from "${table}"`).join(" union all ")}) as each`,
  );
  expect([...found]).toEqual([{ found: 0 }]);
});
