import { connectOnce } from "../../src/db/connect.ts";

/** Makes a database of the cluster ready for tables to be distributed: `nodes` are the addresses of all nodes, the coordinator's first. */
export async function joinNodes(url: string, nodes: readonly string[]): Promise<void> {
  await makeExtension(url, nodes);
  const [coordinator, ...workers] = nodes.map((node) => new URL(node)) as [URL, ...URL[]];
  const { sql, close } = connectOnce(url, "test");
  await sql`select citus_set_coordinator_host(${coordinator.hostname}::text, ${Number(coordinator.port)}::int4)`;
  for (const { hostname, port } of workers) await sql`select citus_add_node(${hostname}::text, ${Number(port)}::int4)`;
  await close();
}

/** The extension, in a database on each node. */
export async function makeExtension(url: string, nodes: readonly string[]): Promise<void> {
  const { pathname } = new URL(url);
  for (const node of nodes) {
    const { sql, close } = connectOnce(Object.assign(new URL(node), { pathname }).href, "test");
    await sql`create extension if not exists citus`;
    await close();
  }
}
