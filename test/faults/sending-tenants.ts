import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "../../src/db/connect.ts";
import { answering, httpReceiver } from "../support/receivers.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { startRule } from "./notifications.ts";

/** A tenant that sends events one after the other, each until it is acknowledged, and is notified of each. */
export interface SendingTenant {
  id: string;
  call: ReturnType<typeof v1>;
  /** Names of events, in their order. */
  acknowledged: string[];
  /** What was answered instead: the status and the code of each answer. */
  refused: string[];
  /** Whether a notification of an event has arrived. */
  arrived(name: string): boolean;
}

const everyMs = 20;
/** Ends what hangs. */
const answerMs = 20_000;

/** Tenants with a rule over their events, who send until `stop`. */
export async function sendingTenants(
  server: { url: string; database: { sql: Sql } },
  count: number,
  stack: AsyncDisposableStack,
) {
  const receiver = stack.use(await httpReceiver());
  const arrived = new Set<string>();
  receiver.answer((request, response, socket) => {
    arrived.add(`${request.path} ${JSON.parse(request.body).event.name}`);
    receiver.received.length = 0;
    answering(200)(request, response, socket);
  });
  const tenants = await Promise.all(
    Array.from({ length: count }, async (): Promise<SendingTenant> => {
      const { id, headers } = await testTenant(server.database.sql);
      await startRule([server.url], headers, `${receiver.url}/${id}`);
      const call = v1(server.url, headers);
      return { id, call, acknowledged: [], refused: [], arrived: (name) => arrived.has(`/${id} ${name}`) };
    }),
  );
  let sending = true;

  async function send({ call, acknowledged, refused }: SendingTenant) {
    for (let number = 0; sending; number++) {
      const name = `disk ${number}`;
      const dimensions = { source: `host ${number % 10}` };
      const event = {
        name,
        timestamp: String(Date.now()),
        dimensions,
        severity: "SEVERITY_ERROR",
        status: "STATUS_OPEN",
      };
      for (;;) {
        const answer = await call(
          "POST",
          "/v1/data-receiver/events",
          { events: [event] },
          AbortSignal.timeout(answerMs),
        ).catch((error: Error) => ({ status: error.name, body: undefined }));
        if (answer.status === 200) break;
        refused.push(`${answer.status} ${answer.body?.code}`);
        await sleep(everyMs);
      }
      acknowledged.push(name);
      await sleep(everyMs);
    }
  }

  const all = Promise.all(tenants.map(send));
  return {
    tenants,
    /** Once the last event of each is acknowledged. */
    async stop() {
      sending = false;
      await all;
    },
  };
}

/** Of what a tenant was acknowledged, what is not stored once, or whose notification has not been sent once; a line each. */
export async function notThereOnce(sql: Sql, { id, acknowledged }: SendingTenant): Promise<string[]> {
  const stored = await sql<{ name: string; count: number }[]>`
    select e.name, count(*)::int4 as count from instances i join events e on e.tenant_id = i.tenant_id and e.id = i.event_id
    where i.tenant_id = ${id} and e.tenant_id = ${id} group by e.name`;
  const sent = await sql<{ name: string; count: number }[]>`
    select e.name, count(*)::int4 as count from delivery_history d join events e on e.tenant_id = d.tenant_id and e.id = d.event_id
    where d.tenant_id = ${id} and e.tenant_id = ${id} and d.status = 'SENT' group by e.name`;
  const once = (rows: readonly { name: string; count: number }[]) =>
    new Set(rows.flatMap(({ name, count }) => (count === 1 ? name : [])));
  const [inStore, told] = [once(stored), once(sent)];
  return acknowledged.flatMap((name) => [
    ...(inStore.has(name) ? [] : [`${name} is not stored once`]),
    ...(told.has(name) ? [] : [`${name} is not told once`]),
  ]);
}

/** The ports of the nodes that hold rows of each tenant, over all tables. */
export async function nodesOfTenants(sql: Sql): Promise<Map<string, Set<number>>> {
  const found = await sql<{ nodeport: number; result: string; success: boolean }[]>`
    select placed.nodeport, placed.success, placed.result
    from pg_dist_partition t cross join lateral run_command_on_placements(t.logicalrelid,
      'select coalesce(string_agg(distinct tenant_id::text, '',''), '''') from %s') as placed
    where t.partmethod = 'h'`;
  const nodes = new Map<string, Set<number>>();
  for (const { nodeport, result, success } of found) {
    if (!success) throw new Error(result);
    for (const id of result.split(",").filter(Boolean)) nodes.set(id, (nodes.get(id) ?? new Set()).add(nodeport));
  }
  return nodes;
}

/** The ids of the tenants whose rows lie on the node with this port. */
export async function tenantsAt(sql: Sql, port: number): Promise<Set<string>> {
  const rows = await sql<{ id: string }[]>`
    select t.id from tenants t join pg_dist_shard_placement p
      on p.shardid = get_shard_id_for_distribution_column('tenant_state', t.id) where p.nodeport = ${port}::int4`;
  return new Set(rows.map(({ id }) => id));
}
