import { expect, test } from "vitest";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { newWorld, type World } from "../support/calls.ts";
import { onCitus } from "../support/citus.ts";
import { plain } from "../support/our-statements.ts";
import { sessionOf, settings, stopAutovacuum } from "../support/plan-scenarios.ts";
import { type Prepared, prepare, rowsRead } from "../support/rows-read.ts";
import { sentStatements } from "../support/sent-statements.ts";
import { testServer } from "../support/server.ts";
import type { RanStatement } from "../support/statement-log.ts";
import { fillTenant } from "../support/tenant-rows.ts";
import { type Make, paged, whole } from "./set-up-kinds.ts";

const many = 9000;
const tables = [
  "triggers",
  "destinations",
  "rules",
  "rule_triggers",
  "rule_destinations",
  "silences",
  "audit_entries",
  "credentials",
  "maintenance_windows",
  "property_updaters",
  "dictionary_entries",
  "api_clients",
  "user_groups",
  "user_accounts",
];

const makes: Record<string, Make> = {
  ...Object.fromEntries(Object.entries(whole).map(([things, { make }]) => [things, make])),
  ...paged,
  rules: ({ client }, name) => {
    const names = { triggerNames: ["first"], destinationNames: ["first"] };
    return client(RuleService).createRule({ rule: { name, enabled: true, matchers: [`name!="${name}"`], ...names } });
  },
  silences: ({ client }, name) =>
    client(SilenceService).createSilence({
      silence: { matchers: [`name="${name}"`], comment: name, endsAt: BigInt(Date.now() + 3_600_000) },
    }),
};

const server = await testServer({});
const { sql, url } = server.database;
await stopAutovacuum(sql);

/** A tenant that has made two of each, so that its totals are known, after it had `count` of each. */
async function tenantWith(count: number): Promise<World> {
  const world = await newWorld(server);
  if (count > 0) await fillTenant(sql, world.tenant.id, count, tables);
  await sql`update rules set enabled = true where tenant_id = ${world.tenant.id}`;
  for (const make of Object.values(makes)) {
    for (const name of ["first", "second"]) await make(world, name, "");
  }
  // As a trigger that compares a text with each event.
  await sql`update triggers set comparisons = 1 where tenant_id = ${world.tenant.id} and name = 'first'`;
  return world;
}

const textsOf = (sent: readonly RanStatement[]) => sent.map(({ text }) => plain(text));
/** The same call for another name: what it made is there by now. */
const again = ({ parameters, ...statement }: RanStatement): RanStatement => ({
  ...statement,
  parameters: parameters?.map((value) => value?.replaceAll("next", "after") ?? null),
});
const sentFor = (world: World, make: Make, name: string) =>
  sentStatements(world.tenant.id, () => make(world, name, ""));

test.skipIf(onCitus)(
  "the 9,000th of each kind reads at most twice the rows of the third, by as many statements",
  async () => {
    const [few, full] = [await tenantWith(0), await tenantWith(many)];
    const session = sessionOf(url, { ...settings, plan_cache_mode: "force_custom_plan" });
    const db = session as never;
    async function rowsOf({ tenant: { id } }: World, sent: readonly RanStatement[]) {
      const prepared: Prepared[] = [];
      for (const [i, statement] of sent.entries()) {
        const each = await prepare(db, again(statement), `s${i}`, id);
        if (typeof each === "string") throw new Error(`${each}: ${statement.text}`);
        prepared.push(each);
      }
      const rows = await rowsRead(db, prepared, id);
      await session`deallocate all`;
      return rows;
    }
    for (const [i, state] of ["not analysed", "analysed"].entries()) {
      for (const [things, make] of Object.entries(makes)) {
        const [sent, sentFull] = [await sentFor(few, make, `next-${i}`), await sentFor(full, make, `next-${i}`)];
        expect.soft(textsOf(sentFull), things).toEqual(textsOf(sent));
        const [rows, rowsFull] = [await rowsOf(few, sent), await rowsOf(full, sent)];
        expect.soft(rows, things).toBeGreaterThan(0);
        expect.soft(rowsFull, `${things}, ${state}: ${rows} rows before`).toBeLessThanOrEqual(2 * rows);
      }
      await sql`analyze`;
    }
    await session.end();
  },
);
