import { readConfig } from "../../src/config/settings.ts";
import { bigintArray } from "../../src/db/batch.ts";
import { connect } from "../../src/db/connect.ts";
import { metricsEach, stepMs } from "./points.ts";

/** A table of a row a point, indexed by series and time, and the usual insert. */
export interface PlainTable extends AsyncDisposable {
  /** Stores requests of this many points over this many connections for a while; returns the points a second. */
  run(count: number, connections: number, countMs: number): Promise<number>;
}

export async function plainTable(url: string, series: number, baseMs: number): Promise<PlainTable> {
  const pool = connect(url, readConfig({ DATABASE_URL: url, BELFRY_POOL_CONNECTIONS_MAX: "80" }));
  const { sql } = pool;
  await sql`create table plain_points (series int8 not null, time_ms int8 not null, value float8 not null)`;
  await sql`create unique index on plain_points (series, time_ms)`;
  let sequence = 0;

  async function insert(count: number): Promise<void> {
    const sets = Math.max(1, Math.floor(series / count));
    const first = (sequence % sets) * count;
    const time = BigInt(baseMs + Math.floor(sequence / sets) * stepMs + (count < metricsEach ? sequence % stepMs : 0));
    sequence += 1;
    const numbers = Array.from({ length: count }, (_, i) => BigInt(first + i));
    const values = numbers.map(() => Math.round(Math.random() * 9000 + 1000) / 100);
    await sql`
      insert into plain_points select * from unnest(
        ${bigintArray(numbers)}::bigint[], ${bigintArray(numbers.map(() => time))}::bigint[],
        ${`{${values.join(",")}}`}::float8[]
      ) on conflict (series, time_ms) do update set value = excluded.value`;
  }

  return {
    async run(count, connections, countMs) {
      const startMs = performance.now();
      let stored = 0;
      await Promise.all(
        Array.from({ length: connections }, async () => {
          while (performance.now() - startMs < countMs) {
            await insert(count);
            stored += count;
          }
        }),
      );
      return (stored / (performance.now() - startMs)) * 1000;
    },
    async [Symbol.asyncDispose]() {
      await sql`drop table plain_points`;
      await pool.close();
    },
  };
}
