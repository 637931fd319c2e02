import { globSync, readFileSync } from "node:fs";
import { loadModule } from "libpg-query";
import { describe, expect, inject, test } from "vitest";
import { testDatabase } from "./support/database.ts";
import { lockOrder } from "./support/lock-order.ts";
import { ourStatements } from "./support/our-statements.ts";
import { distributedTables } from "./support/schema-rules.ts";
import { brokenRules } from "./support/statement-exceptions.ts";
import { readStatements } from "./support/statement-log.ts";
import { statementFaults } from "./support/statement-rules.ts";

/** Which folder may name which table of another one in its statements, and why. */
const shared: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  cli: { tenants: "tenants are created and named on the command line alone" },
  db: {
    leases: "who led last says whether a server of before has run",
    tenant_counts: "running totals of what a tenant sets up are kept for all domains",
    tenant_state: "the row of a tenant from which inserts take it",
    tenants: "an import makes that row for tenants that come without it",
    unmatched_changes: "what only 0.3 can take over is refused at the start",
  },
  credentials: { tenants: "a new master key wraps the data keys of all tenants" },
  events: {
    entities: "searches of events read what their entities are called and have",
    tenant_state: "the lock under which a tenant's feed of changes grows",
  },
  maintenance: { entities: "a preview of a window names the entities that it holds and would take in" },
  metrics: { entities: "a series is made only with its entity, which may be known from memory alone" },
  notifications: {
    rule_changes: "what of rules has changed is read with them, as of one moment",
    tenant_state: "rules are read with their version",
    series: "a standing match is looked at by what its series has now",
    events: "notifications tell of events",
    occurrences: "notifications tell of events",
    due_work: "when a tenant has deliveries is moved on with them",
  },
  tenants: { tenants: "the command line finds and lists them, auth/ reads them for each call" },
};

// Asked before the texts are parsed: for seconds this process then reads nothing that PostgreSQL sends.
const { sql, drop } = await testDatabase();
const distributed = await distributedTables(sql);
await drop();
await loadModule();

const root = new URL("..", import.meta.url).pathname;

describe("everything that the server's code sends to PostgreSQL would run on tables distributed by tenant", () => {
  const ran = readStatements(inject("statements"));
  const ours = ourStatements(ran);

  test("the tests before this one have shown statements", () => {
    if (ran.length < 50) throw new Error("this file reads the statements of the whole run: npm test runs it last");
    const of = (word: string) => ours.filter(({ text }) => new RegExp(`^\\s*${word}`, "i").test(text)).length;
    expect({ select: of("select") > 10, insert: of("insert") > 5, update: of("update") > 0 }).toEqual({
      select: true,
      insert: true,
      update: true,
    });
    expect(distributed.size).toBeGreaterThan(5);
  });

  test("all transactions lock in one order", () => {
    // Keys of updaters that have changed since they were noted are noted under the locks of entities (src/properties/updater-job.ts).
    const spared = /^keys of entities after entities/;
    const late = ran.flatMap(({ late, file }) => (late === undefined || spared.test(late) ? [] : `${late} (${file})`));
    expect(late).toEqual([]);
  });

  test("none breaks a rule without a reason", () => {
    expect(brokenRules(ours, distributed)).toEqual([]);
  });
});

describe("a table is private to its domain", () => {
  const files = globSync("src/**/*.ts", { cwd: root }).map((path) => ({
    path,
    text: readFileSync(root + path, "utf8"),
  }));
  const folderOf = (path: string) => path.split("/")[1] ?? "";
  const owners = new Map(
    files
      .filter(({ path }) => path.endsWith("/tables.ts"))
      .flatMap(({ path, text }) =>
        [...text.matchAll(/pgTable\(\s*"(\w+)"/g)].map(([, table = ""]) => [table, folderOf(path)] as const),
      ),
  );
  const named = files.flatMap(({ path, text }) =>
    [...text.matchAll(/\b(?:from|join|into|update)\s+(\w+)\b/gi)]
      .map(([, table = ""]) => ({ path, table, folder: folderOf(path) }))
      .filter(({ table, folder }) => owners.has(table) && owners.get(table) !== folder),
  );

  test("the tables and who owns them are found", () => {
    expect(owners.size).toBeGreaterThan(20);
    expect(owners.get("entities")).toBe("entities");
  });

  test("a statement names tables of its own folder alone, but for the ones listed above", () => {
    const strange = named.filter(({ folder, table }) => shared[folder]?.[table] === undefined);
    expect(strange.map(({ path, table }) => `${path} names ${table}, which is of ${owners.get(table)}`)).toEqual([]);
  });

  test("each of these is needed", () => {
    const needless = Object.entries(shared).flatMap(([folder, tables]) =>
      Object.keys(tables).filter((table) => !named.some((each) => each.folder === folder && each.table === table)),
    );
    expect(needless).toEqual([]);
  });
});

test("the order of locks finds who leaves it", () => {
  const look = lockOrder();
  expect(look(1, "update entities set name = 'a'")).toBeUndefined();
  const own = [
    "begin",
    "insert into entity_keys (key)",
    "select 1 from events e for no key update",
    "insert into feed (a)",
  ];
  for (const text of own) expect(look(1, text)).toBeUndefined();
  expect(look(2, "insert into entities (id)")).toBeUndefined();
  expect(look(1, "update occurrences o set number = 1")).toMatch(/^rows below events after the feed/);
  expect(look(1, "rollback")).toBeUndefined();
  expect(look(1, "insert into entities (id)")).toBeUndefined();
});

describe("the rules find", () => {
  const tables = new Set(["events", "entities", "due"]);
  test.each([
    ["a table without its tenant", "select * from events where id = $1", /events as events: no condition/],
    ["an or beside the tenant", "select 1 from events where tenant_id = $1 or id = $2", /no condition/],
    ["several tenants", "select 1 from events where tenant_id = any($1)", /no condition/],
    [
      "a join across tenants",
      "select 1 from events e join entities n on n.id = e.entity_id where e.tenant_id = $1",
      /entities as n/,
    ],
    [
      "tables tied to each other alone",
      "select 1 from events e join entities n on n.tenant_id = e.tenant_id",
      /events as e/,
    ],
    [
      "a query within a query",
      "select (select count(*) from events e) from entities n where n.tenant_id = $1",
      /events as e/,
    ],
    ["a common table", "with a as (delete from events where id = $1 returning *) select * from a", /events as events/],
    ["an update without its tenant", "update events set name = $1 where id = $2", /events as events/],
    ["a row that changes its tenant", "update events set tenant_id = $1 where tenant_id = $2", /never changes/],
    ["an insert without the tenant", "insert into events (id) values ($1)", /lack the tenant/],
    ["an insert without columns", "insert into events values ($1)", /not named/],
    [
      "a conflict's key without the tenant",
      "insert into events (tenant_id, id) values ($1, $2) on conflict (id) do nothing",
      /conflict's key/,
    ],
    [
      "the time in do update",
      "insert into events (tenant_id, id) values ($1, $2) on conflict (tenant_id, id) do update set seen = now()",
      /now\(\) in do update/,
    ],
    [
      "the time in do update, by its other name",
      "insert into events (tenant_id) values ($1) on conflict (tenant_id) do update set seen = current_timestamp",
      /SQLValueFunction/,
    ],
    [
      "a volatile function in what an update sets",
      "update events set seen = clock_timestamp() where tenant_id = $1",
      /clock_timestamp\(\) in what a write sets/,
    ],
    [
      "a volatile function in the condition of a delete",
      "delete from events where tenant_id = $1 and seen < random()",
      /random\(\) in what a write sets or asks/,
    ],
    [
      "a query in what a write returns",
      "delete from events where tenant_id = $1 returning (select 1 from entities e where e.tenant_id = $1)",
      /events: a query in returning/,
    ],
    [
      "the time in what a write returns",
      "delete from events where tenant_id = $1 returning statement_timestamp()",
      /events: the time in returning/,
    ],
    [
      "a query in values",
      "insert into events (tenant_id, id) values ($1, (select 1 from entities e where e.tenant_id = $1))",
      /events: a query in values/,
    ],
    [
      "selected rows whose tenant is no row's",
      "insert into events (tenant_id, id) select $1, id from unnest($2::bytea[]) as sent (id)",
      /tenant of selected rows comes from no row/,
    ],
    [
      "a common table beside an insert of selected rows",
      "with a as (select 1 as id) insert into events (tenant_id, id) select home.tenant_id, a.id from home, a",
      /common table beside an insert/,
    ],
    [
      "an insert of what is deleted beside it",
      "with a as (delete from events where tenant_id = $1 returning id) insert into events (tenant_id, id) select $1, id from a",
      /common table beside an insert/,
    ],
    [
      "a volatile function beside it",
      "insert into events (tenant_id, seen) select home.tenant_id, clock_timestamp() from home",
      /clock_timestamp\(\) in an insert of selected rows/,
    ],
    [
      "a query that an outer row tells its tenant",
      "select (select count(*) from events i where i.tenant_id = n.tenant_id) from entities n where n.tenant_id = $1",
      /events as i: the tenant of an outer row/,
    ],
    ["skip locked over all tenants", "select * from due for update skip locked", /skip locked/],
    ["a notification", "notify changes", /NotifyStmt/],
    ["a notification by function", "select pg_notify($1, $2)", /pg_notify/],
    ["an advisory lock", "select pg_try_advisory_lock($1)", /advisory/],
    ["a sequence", "select nextval('a')", /nextval/],
    ["a change of the schema", "create table a (b int)", /CreateStmt/],
  ])("%s", (_what, text, fault) => {
    expect(statementFaults(text, tables).join("\n")).toMatch(fault);
  });

  test.each([
    "select 1 from events where $1::uuid = tenant_id and id = $2",
    "select 1 from events e join entities n using (tenant_id) where e.tenant_id = $1",
    "select 1 from events e join entities n on n.tenant_id = e.tenant_id where e.tenant_id = $1",
    "with a as (select * from events where tenant_id = $1) select * from a",
    "select (select count(*) from events i where i.tenant_id = $1) from entities n where n.tenant_id = $1",
    "update events set seen = c.seen from unnest($2::bytea[]) as c (seen) where events.tenant_id = $1",
    "insert into events (tenant_id, seen) select home.tenant_id, now() from home on conflict (tenant_id) do update set seen = excluded.seen",
    "insert into events (tenant_id, id) select home.tenant_id, id from home, unnest($2::bytea[]) as sent (id) returning id",
    "select * from due where tenant_id = $1 for update skip locked",
    "select 1 from tenants",
    "begin",
  ])("nothing in: %s", (text) => {
    expect(statementFaults(text, tables)).toEqual([]);
  });
});
