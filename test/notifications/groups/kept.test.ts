import { expect, test } from "vitest";
import { deleteOldNotes } from "../../../src/notifications/queue/history.ts";
import { groupPlace } from "./group-place.ts";

const closed = { status: "STATUS_CLOSED" };
const quick = { by: ["source"], waitSec: "0", intervalSec: "1" };
const dayMs = 86_400_000;
const poll = { timeout: 20_000 };

/** A place, and how many rows of each table it has. */
async function countedPlace() {
  const place = await groupPlace();
  const { server, tenant } = place;
  const { sql } = server.database;
  return {
    ...place,
    async rows() {
      const [row] = await sql<Record<string, number>[]>`
        select (select count(*)::int4 from grouped_rules where tenant_id = ${tenant.id}) as rules,
          (select count(*)::int4 from alert_groups where tenant_id = ${tenant.id}) as groups,
          (select count(*)::int4 from group_members where tenant_id = ${tenant.id}) as members,
          (select count(*)::int4 from group_messages where tenant_id = ${tenant.id}) as messages,
          (select count(*)::int4 from group_message_members where tenant_id = ${tenant.id}) as reported`;
      return row;
    },
    /** Removes what is old when so many days have passed. */
    async forget(days: number) {
      const bounds = { nowMs: Date.now() + days * dayMs, retentionMs: 30 * dayMs, recordMs: 33 * dayMs };
      while (await deleteOldNotes(sql, tenant.id, bounds));
    },
  };
}

test("a group that is over leaves no row of itself and its members; its messages go with the records of their deliveries", async () => {
  const { rule, reportAll, arrive, until, rows, forget } = await countedPlace();
  await rule("r", { sendUpdates: true, grouping: { ...quick, waitSec: "1" } });
  const names = Array.from({ length: 30 }, (_, i) => `alert ${i}`);
  await reportAll(names);
  await arrive(1);
  expect(await rows()).toEqual({ rules: 1, groups: 1, members: 30, messages: 1, reported: 30 });
  await reportAll(names, closed);
  await until("clear SENT", "first SENT");
  const sent = { rules: 1, groups: 0, members: 0, messages: 2, reported: 60 };
  expect(await rows()).toEqual(sent);
  await forget(32);
  expect(await rows()).toEqual(sent);
  await forget(34);
  expect(await rows()).toEqual({ rules: 1, groups: 0, members: 0, messages: 0, reported: 0 });
});

test("a rule that is deleted leaves no row of its groups, and one that is no longer grouped neither", async () => {
  const { rule, report, arrive, rows, ok } = await countedPlace();
  await rule("r", { grouping: quick });
  await rule("s", { grouping: quick });
  await report("a");
  await arrive(2);
  expect(await rows()).toMatchObject({ rules: 2, groups: 2, members: 2 });
  await ok("DELETE", "/v1/notification/rules/r");
  expect(await rows()).toMatchObject({ rules: 1, groups: 1, members: 1 });
  await ok("PUT", "/v1/notification/rules/s", { grouping: null });
  await expect.poll(rows, poll).toMatchObject({ rules: 0, groups: 0, members: 0 });
});

test("what a silence holds keeps its message for as long as it is held", async () => {
  const { rule, report, silence, receiver, server, tenant, until, rows, forget, ok } = await countedPlace();
  const { sql } = server.database;
  receiver.answer((_request, response) => response.writeHead(503).end());
  await rule("r", { grouping: quick });
  await report("a");
  const waits = async () => (await sql`select from due_deliveries where tenant_id = ${tenant.id} and tries > 0`).count;
  await expect.poll(waits, { ...poll, interval: 20 }).toBe(1);
  receiver.answer((_request, response) => response.writeHead(200).end());
  const { id } = await silence({ endsAt: String(Date.now() + 200 * dayMs) });
  await sql`update due_deliveries set due_ms = 0 where tenant_id = ${tenant.id}`;
  await sql`update due_work set due_ms = 0 where tenant_id = ${tenant.id}`;
  await until("first HELD");
  await forget(90);
  expect(await rows()).toMatchObject({ messages: 1, reported: 1 });
  await ok("POST", `/v1/notification/silences/${id}:expire`, {});
  await until("first SENT");
  await forget(90);
  expect(await rows()).toMatchObject({ messages: 0, reported: 0 });
});
