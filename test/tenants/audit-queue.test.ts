import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import type { Principal } from "../../src/auth/principal.ts";
import { transaction } from "../../src/db/transaction.ts";
import { openLog } from "../../src/rpc/log.ts";
import { auditQueue } from "../../src/tenants/audit-queue.ts";
import { testDatabase } from "../support/database.ts";
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
  test("is waited for by who lists the log", async () => {
    const queue = auditQueue(pool, Date.now, log);
    queue.record(event("first"));
    await queue.settled(principal.tenantId);
    expect(await stored()).toEqual(["first"]);
    expect(queue.stats()).toEqual({ waiting: 0, lost: 0 });
    await queue.stop();
  });

  test("is written once the database is there again", async () => {
    const queue = auditQueue(pool, Date.now, log);
    await locked(async () => {
      for (let i = 0; i < 500; i++) queue.record(event(`slow ${i}`));
      await queue.settled(principal.tenantId);
      expect(queue.stats().waiting).toBe(500);
    });
    await expect.poll(() => queue.stats().waiting).toBe(0);
    expect((await stored()).filter((id) => id.startsWith("slow"))).toHaveLength(500);
    await queue.stop();
  });

  test("goes to the log whole when it cannot be written before the end", async () => {
    const queue = auditQueue(pool, Date.now, log);
    await locked(async () => {
      queue.record(event("under way"));
      await nextTurn();
      queue.record(event("left behind"));
      // The lock outlasts it.
      await queue.stop();
    });
    expect(lines.some((line) => line.includes("left behind") && line.includes("not written"))).toBe(true);
  });

  test("that the database does not take goes to the log, and takes none of another tenant's along", async () => {
    const queue = auditQueue(pool, Date.now, log);
    const other = { ...principal, tenantId: (await testTenant(sql)).id };
    await locked(async () => {
      queue.record(event("before"));
      queue.record({ ...event("poi\0son"), principal: other });
    });
    await expect.poll(() => queue.stats()).toEqual({ waiting: 0, lost: 1 });
    expect(await stored()).toContain("before");
    expect(lines.filter((line) => line.includes("not written") && line.includes("\\u0000"))).toHaveLength(1);
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
        queue.record({ ...event("many"), principal: { ...principal, tenantId, keyId: `${i % 10}` } });
      expect(lost()).toBeGreaterThan(1000);
      expect(lost()).toBeLessThan(1200);
      queue.record(event("one"));
    });
    await expect.poll(stored).toContain("one");
    await queue.stop();
  });
});
