import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { transaction } from "../../../src/db/transaction.ts";
import { testDatabase } from "../../support/database.ts";

const { sql } = await testDatabase();

// The buffers of a stream and of a socket hold 64 KiB each: the last rows fill the first one in some of these.
const counts = Array.from({ length: 8 }, (_, i) => 1600 + 200 * i);

test.each(counts)(
  "after %i rows that waited for their reader, the transaction goes on",
  { timeout: 5000 },
  async (count) => {
    const rows = await transaction(sql, async (tx) => {
      const query = tx.unsafe(`copy (select n, md5(n::text) from generate_series(1, ${count}) n) to stdout`);
      const stream = (await query.readable()) as Readable;
      await sleep(50);
      let read = 0;
      for await (const _row of stream.iterator({ destroyOnReturn: false })) read += 1;
      expect(await tx`select 1 as one`).toEqual([{ one: 1 }]);
      return read;
    });
    expect(rows).toBe(count);
  },
);
