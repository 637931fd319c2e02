import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../src/db/connect.ts";

const all = { filter: { field: "entity.dimensions.source", operation: "OP_EXISTS" } };

/** Calls /v1. @throws for any answer but 200. */
async function post(url: string, headers: Record<string, string>, path: string, body: object): Promise<unknown> {
  const answer = await fetch(`${url}/v1/${path}`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (answer.status !== 200) throw new Error(`${path} answers ${answer.status}: ${await answer.text()}`);
  return await answer.json();
}

/** Creates an updater over all entities, which says its name in a property, and starts it. */
export async function startUpdater(url: string, headers: Record<string, string>, name: string): Promise<void> {
  const updater = { name, enabled: true, entity_input: { clause: all }, properties: { [name]: true } };
  const answer = await post(url, headers, "modelcontext/custompropertyupdaters:create", { updaters: [updater] });
  const error = (answer as { results: { error: string }[] }).results[0]?.error;
  if (error !== "") throw new Error(error);
}

/** Entities with these numbers. */
export async function putEntities(url: string, headers: Record<string, string>, from: number, to: number) {
  for (let begin = from; begin < to; begin += 500) {
    const models = Array.from({ length: Math.min(500, to - begin) }, (_, i) => ({
      timestamp: String(Date.now()),
      dimensions: { source: `host ${begin + i}` },
    }));
    await post(url, headers, "data-receiver/models", { models });
  }
}

/** Waits until no job is left. @throws when that takes too long. */
export async function jobsDone(db: Db, withinMs: number): Promise<void> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    const left = await db<{ kind: string; count: bigint; failing: bigint; leased: bigint }[]>`
      select kind, count(*) as count, count(*) filter (where failures > 0) as failing, max(lease_until_ms) as leased
      from jobs where kind like 'properties.%' group by kind`;
    const due = await db`select kind from due_work where kind like 'properties.%'`;
    if (left.length === 0 && due.length === 0) return;
    if (performance.now() > endMs) {
      const lines = left.map((row) => `${row.kind}: ${row.count}, ${row.failing} failing, leased until ${row.leased}`);
      throw new Error(`jobs are left after ${withinMs} ms:\n${lines.join("\n")}`);
    }
    await sleep(50);
  }
}

/** How many entities there are without the property that an updater sets. */
export async function entitiesWithout(db: Db, tenantId: string, name: string): Promise<number> {
  const [row] = await db<[{ count: number }]>`
    select count(*)::float8 as count from entities
    where tenant_id = ${tenantId} and deleted_ms is null and not custom_properties @> ${JSON.stringify({ [name]: true })}::text::jsonb`;
  return row.count;
}
