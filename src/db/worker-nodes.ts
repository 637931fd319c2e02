import { setTimeout as sleep } from "node:timers/promises";
import type { Fragment } from "postgres";
import type { Db, Sql } from "./connect.ts";
import { sqlJoin } from "./sql-join.ts";

/** What lies on one worker of a cluster: its parts of one table. */
interface Placement {
  nodename: string;
  nodeport: number;
  shards: string[];
}

/** A worker of the cluster, and since when it has not answered, ms. */
interface Node {
  connection?: { sql: Sql; close(): Promise<void> } | undefined;
  awaySinceMs?: number | undefined;
  nextMs: number;
}

/** How long one look at a worker may take, and how long one that did not answer is left alone, ms. */
const lookMs = 1000;
const restMs = 3000;

/** Asks workers directly, so that one that is away takes nothing from the tenants of the others. */
export interface WorkerNodes {
  /** What `ask` finds on each worker in its parts of a table; of those that do not answer nothing. */
  all<T>(
    coordinator: Db,
    table: string,
    ask: (db: Db, shards: readonly string[]) => Promise<readonly T[]>,
  ): Promise<T[]>;
  /** By address: whether a worker has answered last. */
  stats(): [address: string, up: boolean][];
  close(): Promise<void>;
}

/**
 * Connections to the workers of the cluster that `url` leads to, one each, made when they are needed: at the addresses that the
 * coordinator knows, with its account and password.
 */
export function workerNodes(url: string, open: (url: string) => { sql: Sql; close(): Promise<void> }): WorkerNodes {
  const nodes = new Map<string, Node>();

  function drop(node: Node) {
    const { connection } = node;
    node.connection = undefined;
    void connection?.close().catch(() => undefined);
  }

  async function look<T>(
    { nodename, nodeport, shards }: Placement,
    ask: (db: Db, shards: readonly string[]) => Promise<readonly T[]>,
  ) {
    const address = `${nodename}:${nodeport}`;
    const node = nodes.get(address) ?? { nextMs: 0 };
    nodes.set(address, node);
    if (performance.now() < node.nextMs) return [];
    const ended = new AbortController();
    try {
      node.connection ??= open(atNode(url, nodename, nodeport));
      const late = sleep(lookMs, undefined, { signal: ended.signal, ref: false }).then(() => {
        throw new Error("the worker did not answer in time");
      });
      late.catch(() => undefined);
      const found = await Promise.race([ask(node.connection.sql, shards), late]);
      node.awaySinceMs = undefined;
      return found;
    } catch {
      node.awaySinceMs ??= performance.now();
      node.nextMs = performance.now() + restMs;
      drop(node);
      return [];
    } finally {
      ended.abort();
    }
  }

  return {
    async all(coordinator, table, ask) {
      const placements = await coordinator<Placement[]>`
        select nodename, nodeport, array_agg(shard_name(logicalrelid, shardid) order by shardid) as shards
        from pg_dist_shard join pg_dist_placement using (shardid) join pg_dist_node using (groupid)
        where logicalrelid = ${table}::text::regclass and noderole = 'primary'
        group by nodename, nodeport`;
      for (const address of nodes.keys()) {
        if (placements.some(({ nodename, nodeport }) => address === `${nodename}:${nodeport}`)) continue;
        drop(nodes.get(address) as Node);
        nodes.delete(address);
      }
      return (await Promise.all(placements.map((each) => look(each, ask)))).flat();
    },
    stats: () => [...nodes].map(([address, { awaySinceMs }]) => [address, awaySinceMs === undefined]),
    async close() {
      await Promise.all([...nodes.values()].map(({ connection }) => connection?.close()));
    },
  };
}

function atNode(url: string, host: string, port: number): string {
  const node = new URL(url);
  node.hostname = host.includes(":") ? `[${host}]` : host;
  node.port = String(port);
  return node.href;
}

/**
 * Asks for rows of all tenants in a table. Where tables lie distributed each worker is asked for its own, so that one that is away keeps
 * back its own tenants' rows alone. @param ask is given what to read from, by the table's name; with several workers it is called for each
 */
export async function ofAllTenants<T>(
  workers: WorkerNodes | undefined,
  db: Db,
  table: string,
  ask: (db: Db, from: Fragment) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  if (workers === undefined) return await ask(db, db`${db(table)}` as Fragment);
  return await workers.all(db, table, (node, shards) => {
    const parts = shards.map((shard) => node`select * from ${node(shard)}`);
    return ask(node, node`(${sqlJoin(node, parts, "union all")}) as ${node(table)}` as Fragment);
  });
}
