import { expect, onTestFinished, test } from "vitest";
import { diskSpace } from "../../src/db/disk-space.ts";
import { emptyDatabase, testDatabase } from "../support/database.ts";

const { sql, pool } = await testDatabase();

/** Fails as PostgreSQL does that finds no room. */
const fail = (code: string) =>
  sql.unsafe(`do $$ begin raise exception 'could not extend file' using errcode = '${code}'; end $$`);

test("a statement or a transaction that finds no room is noted, and a probe that finds some is, too", async () => {
  await expect(fail("22000")).rejects.toThrow();
  expect(pool.disk.full).toBe(false);
  for (const work of [() => fail("53100"), () => sql.begin((tx) => tx.unsafe("select 1").then(() => fail("53100")))]) {
    await expect(work()).rejects.toThrow("could not extend file");
    expect(pool.disk.full).toBe(true);
    await expect.poll(() => pool.disk.full).toBe(false);
  }
});

test("while probes find no room, there is none", async () => {
  let room = false;
  let probes = 0;
  async function probe() {
    probes += 1;
    if (!room) throw Object.assign(new Error(), { code: "53100" });
  }
  const disk = diskSpace({ probe, probeIntervalMs: 5 });
  onTestFinished(() => disk.stop());
  disk.note({ code: "53100" });
  await expect.poll(() => probes).toBeGreaterThan(3);
  expect(disk.full).toBe(true);
  room = true;
  await expect.poll(() => disk.full).toBe(false);
});

test("the probe writes to the disk", async () => {
  const { query } = await emptyDatabase();
  // By the settings and the statement of src/db/connect.ts.
  const plan = await query(`set work_mem = '64kB'; explain (analyze, costs off, timing off, summary off)
    select count(*) from (
      select repeat('x', 100) || n as text from generate_series(1, 10000) as n order by 1 offset 0) as sorted`);
  expect(JSON.stringify(plan)).toMatch(/external merge +Disk/);
});
