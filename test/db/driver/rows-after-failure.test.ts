import { expect, test } from "vitest";
import { cancelOn } from "../../../src/db/driver/cancel.ts";
import { testDatabase } from "../../support/database.ts";

const { sql } = await testDatabase();

/** Fails after some rows. */
const midway = () => sql`select 10 / (5 - i) as n from generate_series(1, 10) as i`;

test("a statement after one that failed midway has its own rows and no others", async () => {
  for (let i = 0; i < 20; i++) {
    await expect(midway()).rejects.toThrow("division by zero");
    expect([...(await sql`select 7 as n`)]).toEqual([{ n: 7 }]);
  }
});

test("so has one after a statement that was cancelled midway", async () => {
  for (let i = 0; i < 5; i++) {
    const rows = sql`select i, pg_sleep(case when i > 2000 then 10 else 0 end) from generate_series(1, 5000) as i`;
    await expect(cancelOn(rows, AbortSignal.timeout(100))).rejects.toThrow("timeout");
    const answers = await Promise.all(Array.from({ length: 8 }, () => sql`select 7 as n`));
    for (const answer of answers) expect([...answer]).toEqual([{ n: 7 }]);
  }
});
