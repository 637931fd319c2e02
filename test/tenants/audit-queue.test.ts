import { beforeAll, describe, expect, test } from "vitest";
import type { Principal } from "../../src/auth/principal.ts";
import { transaction } from "../../src/db/transaction.ts";
import { openLog } from "../../src/rpc/log.ts";
import { auditQueue } from "../../src/tenants/audit-queue.ts";
import { testDatabase } from "../support/database.ts";
import { ownClock } from "../support/stretch.ts";
import { testTenant } from "../support/tenant.ts";

const { pool, sql } = await testDatabase();
const lines: string[] = [];
const log = openLog("info", { write: (line: string) => void lines.push(line) });
let principal: Principal;

beforeAll(async () => {
  const { id, name } = await testTenant(sql);
  const client = { clientId: "c", clientName: "client", clientType: "USER", role: "user", keyId: "k" } as const;
  principal = { tenantId: id, tenantName: name, keyPrefix: "p", ...client };
});

const event = (requestId: string) => ({ principal, rpc: "a.B/CreateC", resource: "c/d", code: 7, requestId });
const stored = async () =>
  (await sql<{ id: string }[]>`select request_id as id from audit_entries order by time_ms, id`).map(({ id }) => id);

/** Keeps everybody from writing the audit log for a while. */
async function locked(whileLocked: () => Promise<void>) {
  await transaction(sql, async (tx) => {
    await tx`lock table audit_entries in access exclusive mode`;
    await whileLocked();
  });
}

describe("a row of a call that failed", () => {
  test("is written when its answer goes out", async () => {
    const queue = auditQueue(pool, Date.now, log);
    await queue.record(event("first"));
    expect(await stored()).toEqual(["first"]);
    await queue.settled(principal.tenantId);
    expect(queue.stats()).toEqual({ waiting: 0, lost: 0 });
    await queue.stop();
  });

  test("holds up its answer for some 50 ms at most, and is written later", async () => {
    const queue = auditQueue(pool, Date.now, log);
    await locked(async () => {
      const clock = ownClock();
      await Promise.all(Array.from({ length: 500 }, (_, i) => queue.record(event(`slow ${i}`))));
      expect(clock()).toBeLessThan(500);
    });
    await queue.settled(principal.tenantId);
    expect((await stored()).filter((id) => id.startsWith("slow"))).toHaveLength(500);
    await queue.stop();
  });

  test("goes to the log whole when it cannot be written before the end", async () => {
    const queue = auditQueue(pool, Date.now, log);
    await locked(async () => {
      await queue.record(event("under way"));
      await queue.record(event("left behind"));
      const clock = ownClock();
      await queue.stop();
      expect(clock()).toBeLessThan(2000);
    });
    expect(lines.some((line) => line.includes("left behind") && line.includes("not written"))).toBe(true);
  });

  test("that the database does not take goes to the log, and takes none of its tenant's or another's along", async () => {
    const queue = auditQueue(pool, Date.now, log);
    const other = { ...principal, tenantId: (await testTenant(sql)).id };
    await locked(async () => {
      // Together in one statement, after the first.
      for (const id of ["before", "good 1", "ba\0d", "good 2"]) void queue.record(event(id));
      void queue.record({ ...event("neighbour"), principal: other });
      void queue.record({ ...event("poi\0son"), principal: other });
    });
    await Promise.all([queue.settled(principal.tenantId), queue.settled(other.tenantId)]);
    expect(await stored()).toEqual(expect.arrayContaining(["before", "good 1", "good 2", "neighbour"]));
    const lost = lines.filter((line) => line.includes("not written") && line.includes("\\u0000"));
    expect(lost).toHaveLength(2);
    await queue.stop();
  });
});

describe("a tenant with very many rows", () => {
  test("leaves room for those of another", async () => {
    const queue = auditQueue(pool, Date.now, log);
    const tenantId = (await testTenant(sql)).id;
    const lost = () => lines.filter((line) => line.includes("not written") && line.includes(tenantId)).length;
    await locked(async () => {
      for (let i = 0; i < 10_000; i++)
        void queue.record({ ...event("many"), principal: { ...principal, tenantId, keyId: `${i % 10}` } });
      expect(lost()).toBeGreaterThan(1000);
      expect(lost()).toBeLessThan(1200);
      void queue.record(event("one"));
    });
    await queue.settled(principal.tenantId);
    expect(await stored()).toContain("one");
    await queue.stop();
  });
});
