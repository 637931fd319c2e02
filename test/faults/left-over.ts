import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../src/db/connect.ts";

/** In the end no job waits that is due, fails or is leased, and no window has left anything. */
export async function leftOver(db: Db, withinMs: number): Promise<string[]> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    const now = BigInt(Date.now());
    const jobs = await db<{ kind: string; jobs: number }[]>`
      select kind, count(*)::int4 as jobs from jobs
      where failures > 0 or lease_until_ms > ${now} or due_ms < ${now - 5000n} group by kind`;
    const work = await db<{ kind: string }[]>`select kind from due_work where due_ms < ${now - 5000n}`;
    const [rest] = await db<{ open: number; members: number; targets: number; states: number }[]>`
      select (select count(*)::int4 from maintenance_windows where run_state <> 2) as open,
        (select count(*)::int4 from maintenance_members) as members,
        (select count(*)::int4 from maintenance_targets) as targets,
        (select count(*)::int4 from entities where window_production_state is not null) as states`;
    const wrong = [
      ...jobs.map(({ kind, jobs: count }) => `${count} jobs of ${kind} are left`),
      ...work.map(({ kind }) => `due work of ${kind} is left`),
      ...Object.entries(rest ?? {}).flatMap(([what, count]) =>
        count > 0 ? [`windows: ${count} ${what} are left`] : [],
      ),
    ];
    if (wrong.length === 0 || performance.now() > endMs) return wrong;
    await sleep(500);
  }
}

/** What servers that have stopped in order still hold. */
export async function leasesLeft(db: Db): Promise<string[]> {
  const held = await db<{ what: string; count: number }[]>`
    select 'leases' as what, count(*)::int4 as count from leases where until_ms > 0
    union all select 'leased jobs', count(*)::int4 from jobs where lease_until_ms > ${BigInt(Date.now())}
    union all select 'deliveries', count(*)::int4 from due_deliveries`;
  return held.flatMap(({ what, count }) =>
    count > 0 ? [`${count} ${what} are left when the servers have stopped`] : [],
  );
}
