import { expect, test } from "vitest";
import { connectOnce } from "../../src/db/connect.ts";
import { onCitus } from "../support/citus.ts";
import { testServer } from "../support/server.ts";
import { nodesOfTenants, notThereOnce, type SendingTenant, sendingTenants } from "./sending-tenants.ts";

interface Place {
  shard: bigint;
  host: string;
  port: number;
}

test.runIf(onCitus)("a tenant that is moved to another worker while it sends notices nothing", async () => {
  await using stack = new AsyncDisposableStack();
  const server = await testServer({ BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" });
  const { sql, close } = connectOnce(server.database.url, "test");
  stack.defer(close);
  const load = await sendingTenants(server, 4, stack);
  const [moved] = load.tenants as [SendingTenant];
  const placeOf = async () => {
    const [place] = await sql<[Place]>`
      select shardid as shard, nodename as host, nodeport as port from pg_dist_shard_placement
      where shardid = get_shard_id_for_distribution_column('tenant_state', ${moved.id}::uuid)`;
    return place;
  };
  const goesOn = async () => {
    const before = new Map(load.tenants.map(({ id, acknowledged }) => [id, acknowledged.length]));
    const last = ({ id, acknowledged }: SendingTenant) => acknowledged[(before.get(id) as number) + 10];
    await expect.poll(() => load.tenants.every((each) => last(each) && each.arrived(last(each) as string))).toBe(true);
  };

  for (const mode of ["block_writes", "force_logical"]) {
    await goesOn();
    const { shard, host, port } = await placeOf();
    const [to] = await sql<[{ host: string; port: number }]>`
      select nodename as host, nodeport as port from pg_dist_node where shouldhaveshards and nodeport <> ${port}::int4`;
    await sql`
      select citus_move_shard_placement(${shard}::int8, ${host}::text, ${port}::int4, ${to.host}::text, ${to.port}::int4,
        ${mode}::text::citus.shard_transfer_mode)`;
    expect((await placeOf()).port).toBe(to.port);
    await goesOn();
  }
  await load.stop();

  expect(load.tenants.flatMap(({ refused }) => refused)).toEqual([]);
  await expect
    .poll(async () => (await Promise.all(load.tenants.map((each) => notThereOnce(sql, each)))).flat())
    .toEqual([]);
  await sql`call citus_cleanup_orphaned_resources()`;
  const nodes = await nodesOfTenants(sql);
  expect(load.tenants.map(({ id }) => nodes.get(id)?.size)).toEqual(load.tenants.map(() => 1));
});
