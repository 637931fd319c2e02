import { expect, test } from "vitest";
import { localTables, referenceTable } from "../../src/db/distribution.ts";
import { testDatabase } from "../support/database.ts";
import { everywhere, schemaFaults } from "../support/schema-rules.ts";

const { sql } = await testDatabase();

test("the schema could be distributed by tenant", async () => {
  expect(await schemaFaults(sql)).toEqual([]);
});

test("all tables are distributed by tenant but for those that every node holds, or the coordinator alone", () => {
  expect([referenceTable, ...localTables].sort()).toEqual(Object.keys(everywhere).sort());
});

test("the rules find what a schema must not have", async () => {
  const found = await sql
    .begin(async (tx) => {
      await tx.unsafe(`
        create table parents (id int primary key, tenant_id uuid, unique (tenant_id, id));
        create table children (tenant_id uuid, id serial, parent int references parents, primary key (tenant_id, id));
        create function nothing() returns trigger language plpgsql as 'begin return null; end';
        create trigger told after insert on children execute function nothing();
        create table notes (tenant_id text, id int, primary key (tenant_id, id));
        create table everybody (id int primary key, tenant_id uuid not null, parent int,
          foreign key (tenant_id, parent) references parents (tenant_id, id) on delete set null)`);
      const faults = await schemaFaults(tx, { ...everywhere, children: "none", everybody: "all" });
      throw Object.assign(new Error("not to be kept"), { faults });
    })
    .catch((error) => error.faults ?? Promise.reject(error));
  expect(found).toEqual([
    "trigger told on children",
    "sequence children_id_seq",
    "key without the tenant: CREATE UNIQUE INDEX parents_pkey ON public.parents USING btree (id)",
    "children needs no exception",
    "foreign key without the tenant: children.children_parent_fkey",
    "foreign key from every node to a tenant's: children.children_parent_fkey",
    "foreign key from every node to a tenant's: everybody.everybody_tenant_id_parent_fkey",
    "foreign key that would clear the tenant: everybody.everybody_tenant_id_parent_fkey",
    "the tenant of notes is no uuid, or may be missing",
    "the tenant of parents is no uuid, or may be missing",
  ]);
});
