import { globSync, readFileSync } from "node:fs";
import { integer, pgTable, text, unique } from "drizzle-orm/pg-core";
import { describe, expect, test } from "vitest";
import { houseRules } from "./support/house-rules.ts";
import { keysWithoutTenant } from "./support/tenant-keys.ts";
import { readTree } from "./support/tree.ts";

const root = new URL("..", import.meta.url).pathname;
const tree = readTree(root);

describe.each(houseRules)("$guarantee", ({ broken, violations }) => {
  test("in this tree", () => {
    expect(violations(tree)).toEqual([]);
  });

  test("each file of a tree that breaks it is found", () => {
    const found = violations(new Map(Object.entries(broken)));
    const named = (path: string) => found.some((line) => path.startsWith(line.split(":", 1)[0] ?? ""));
    expect(Object.keys(broken).filter((path) => !named(path))).toEqual([]);
  });
});

describe("every key begins with the tenant", () => {
  /** Tables that are read before the tenant is known, or that belong to none. */
  const exceptions = {
    tenants: "its id is the tenant",
    api_key_prefixes: "leads from a key to its tenant",
    leases: "of no tenant: who leads in what",
    master_keys: "of the whole database",
  };

  test.each(globSync("src/**/tables.ts", { cwd: root }))("in %s", async (path) => {
    expect(keysWithoutTenant(await import(`${root}${path}`), exceptions)).toEqual([]);
  });

  test("a key without it is found", () => {
    const parents = pgTable("parents", { id: integer("id").primaryKey() });
    const children = pgTable(
      "children",
      { tenantId: text("tenant_id"), name: text("name"), parent: integer("parent").references(() => parents.id) },
      (table) => [unique().on(table.name), unique().on(table.tenantId, table.name)],
    );
    expect(keysWithoutTenant({ parents, children, other: 1 }, {})).toEqual([
      "parents: primary key (id)",
      "children: unique (name)",
      "children: foreign key (parent)",
      "children: foreign key to (id)",
    ]);
  });
});

describe("migrations are named by a person", () => {
  const kit = readFileSync(`${root}node_modules/drizzle-kit/bin.cjs`, "utf8");
  const words = (list: string) => {
    const body = new RegExp(`\\b${list} = \\[([^\\]]*)\\]`).exec(kit)?.[1] ?? "";
    return [...body.matchAll(/"(\w+)"/g)].map((match) => match[1] ?? "");
  };
  const adjectives = words("adjectives");
  const heroes = words("heroes");
  const thrown = (name: string) =>
    adjectives.some((word) => heroes.includes(name.startsWith(`${word}_`) ? name.slice(word.length + 1) : ""));

  test("not by the dice of drizzle-kit", () => {
    const names = [...tree.keys()].map((path) => /^migrations\/\d{4}_(\w+)\.sql$/.exec(path)?.[1] ?? "");
    expect(names.filter(thrown)).toEqual([]);
  });

  test("its dice are recognised", () => {
    expect(thrown("brainy_beast")).toBe(true);
    expect(thrown("occurrence_annotations")).toBe(false);
  });
});
