import { plain } from "./our-statements.ts";
import type { RanStatement } from "./statement-log.ts";
import { statementFaults } from "./statement-rules.ts";

/** What may break a rule: the begin of the statement, the fault, and why it may. */
export const statementExceptions: readonly { begin: string; fault: RegExp; why: string }[] = [
  { begin: "select pg_try_advisory_lock(", fault: /pg_try_advisory/, why: "migrations run on one node" },
  { begin: "copy (select", fault: /CopyStmt|no condition says/, why: "an export holds all tenants" },
  { begin: 'copy "', fault: /CopyStmt/, why: "an import fills an empty database" },
  { begin: 'create table if not exists "', fault: /CreateStmt/, why: "an import makes the partitions of its tables" },
  { begin: "select count(*) as count, md5(", fault: /no condition says/, why: "a test compares whole databases" },
  { begin: "do $$ begin raise exception 'could not", fault: /DoStmt/, why: "a test fails as a full disk does" },
  {
    begin: 'insert into "',
    fault: /no condition says|comes from no row|in an insert of selected rows/,
    why: "a test fills every table",
  },
  { begin: 'lock table "', fault: /LockStmt/, why: "exports and imports work alone on what they copy" },
  { begin: 'select exists (select from "', fault: /no condition says/, why: "an import wants an empty database" },
  { begin: "analyze", fault: /VacuumStmt/, why: "an import has filled all tables" },
  { begin: "drop index concurrently", fault: /DropStmt/, why: "a migration that was cut off has left the index" },
  { begin: 'create table "', fault: /CreateStmt/, why: "partitions are made ahead, on the node of their table" },
  { begin: 'alter table "', fault: /AlterTableStmt/, why: "partitions are attached and detached" },
  { begin: 'drop table if exists "', fault: /DropStmt/, why: "partitions that are too old" },
  { begin: "create table if not exists migrations", fault: /CreateStmt/, why: "made before the first migration" },
  { begin: "create database belfry", fault: /CreatedbStmt/, why: "the embedded database is made at its first start" },
  { begin: "create role ", fault: /CreateRoleStmt/, why: "roles of the embedded database, at its first start" },
  { begin: 'select tenant_id as "tenantId", kind, due_ms', fault: /due_work/, why: "says which tenants have due work" },
  {
    begin: "select from unmatched_changes limit 1",
    fault: /no condition says/,
    why: "asked once, before a server serves",
  },
  { begin: "select kind, (count(*) filter", fault: /jobs as jobs/, why: "depth and age of the queue, for the log" },
  { begin: "discard plans", fault: /DiscardStmt/, why: "a connection plans anew" },
  { begin: "listen ", fault: /ListenStmt/, why: "a hint; what is not heard is found by looking" },
  { begin: "select pg_notify(", fault: /pg_notify/, why: "a hint; feeds are looked at each second" },
  { begin: "create table seen_", fault: /CreateStmt/, why: "tables of a test of partitions" },
  { begin: "alter table seen_", fault: /AlterTableStmt/, why: "tables of a test of partitions" },
  { begin: "create view seen_", fault: /ViewStmt/, why: "a view in the place of a partition, in a test" },
  { begin: "create view shown_seen_", fault: /ViewStmt/, why: "a view of a partition, in a test" },
  { begin: "lock table credentials in access", fault: /LockStmt/, why: "a test makes statements wait" },
  { begin: "notify ", fault: /NotifyStmt/, why: "a hint; what is not heard is found by looking" },
  {
    begin: "vacuum analyze",
    fault: /VacuumStmt/,
    why: "tests of what PostgreSQL reads begin with tables that it knows",
  },
  { begin: "prepare explained(", fault: /PrepareStmt/, why: "tests ask how a statement would run without values" },
  { begin: "explain (", fault: /ExplainStmt/, why: "tests ask how a statement would run, or has run" },
  { begin: "create table metric_chunks_all partition", fault: /CreateStmt/, why: "tests fill tables for all times" },
  { begin: "create table delivery_history_all partition", fault: /CreateStmt/, why: "tests fill tables for all times" },
  { begin: "explain select", fault: /ExplainStmt/, why: "tests ask how a statement would run" },
  {
    begin: "select t::text || to_jsonb(t)::text",
    fault: /no condition says/,
    why: "a test looks for secrets in all tables",
  },
  {
    begin: "create or replace function refuse() returns trigger",
    fault: /CreateFunctionStmt/,
    why: "a test makes PostgreSQL refuse rows",
  },
  {
    begin: "create trigger refused before insert on ",
    fault: /CreateTrigStmt/,
    why: "a test makes PostgreSQL refuse rows",
  },
  {
    begin: "create trigger bad before ",
    fault: /CreateTrigStmt/,
    why: "a test makes statements about one trigger fail",
  },
  { begin: "do $$ begin raise exception 'x'", fault: /DoStmt/, why: "a test makes PostgreSQL fail" },
];

/** The rules that these statements break without a reason. */
export function brokenRules(statements: readonly RanStatement[], distributed: ReadonlySet<string>): string[] {
  return statements.flatMap(({ text, file }) =>
    statementFaults(text, distributed)
      .filter(
        (fault) => !statementExceptions.some((each) => plain(text).startsWith(each.begin) && each.fault.test(fault)),
      )
      .map((fault) => `${fault}: ${plain(text).slice(0, 300)} (${file})`),
  );
}
