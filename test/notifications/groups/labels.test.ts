import { expect, test } from "vitest";
import { consumed } from "../../support/consumed.ts";
import { groupPlace } from "./group-place.ts";

const critical = { severity: "SEVERITY_CRITICAL" };

/** The occurrence of the only event. */
async function occurrenceId({ ok }: Awaited<ReturnType<typeof groupPlace>>): Promise<string> {
  const { results } = (await ok("POST", "/v1/events:search", { query: {} })) as {
    results: { occurrences: { id: string }[] }[];
  };
  return results[0]?.occurrences[0]?.id as string;
}

test("an escalation pages by the group of its new severity at once, not when the old group is looked at next", async () => {
  const place = await groupPlace();
  const { rule, report, arrive, made, server, tenant } = place;
  const { sql } = server.database;
  await rule("r", { sendUpdates: true, grouping: { by: ["severity"], waitSec: "1", intervalSec: "3600" } });
  await report("disk");
  expect(await arrive(1)).toMatchObject([{ occasion: "first", group_labels: { severity: "error" } }]);
  await report("disk", critical);
  const [, second] = await arrive(2);
  expect(second).toMatchObject({
    occasion: "first",
    group_labels: { severity: "critical" },
    count: 1,
    event: { name: "disk", severity: 5 },
  });
  const id = await occurrenceId(place);
  await expect
    .poll(async () => (await made("rules/r:explain", { occurrenceId: id })) as { outcome: string })
    .toMatchObject({ outcome: "NOTIFIED" });
  const groups = await sql<{ dueMs: number | null; severity: string }[]>`
    select due_ms::float8 as "dueMs", labels ->> 'severity' as severity from alert_groups where tenant_id = ${tenant.id}`;
  const old = groups.find(({ severity }) => severity === "error");
  // It leaves at the next flush, an hour after the first.
  expect(old?.dueMs).toBeGreaterThan(Date.now() + 3_500_000);
});

test("an explanation says that an escalated member waits for the first message of its new group", async () => {
  const place = await groupPlace();
  const { rule, report, arrive, made, silence, ok } = place;
  await rule("r", { grouping: { by: ["severity"], waitSec: "3600", intervalSec: "3600" } });
  // Older than the wait.
  await report("disk", { timestamp: String(Date.now() - 7_200_000) });
  await arrive(1);
  const id = await occurrenceId(place);
  const explained = () =>
    made("rules/r:explain", { occurrenceId: id }) as Promise<{ outcome: string; steps: { step: string }[] }>;
  expect(await explained()).toMatchObject({ outcome: "NOTIFIED" });
  const { id: silenceId } = await silence({ matchers: ["severity=critical"] });
  await report("disk", critical);
  expect(await explained()).toMatchObject({ outcome: "SILENCED" });
  await ok("POST", `/v1/notification/silences/${silenceId}:expire`, {});
  await arrive(2);
  await expect.poll(async () => (await explained()).outcome).toBe("NOTIFIED");
});

test("a member that a silence holds is sent as soon as its labels are no longer those of the silence", async () => {
  const { rule, report, arrive, silence, server, tenant } = await groupPlace();
  const { sql } = server.database;
  await silence({ matchers: ["severity=error"] });
  await rule("r", { grouping: { by: [], waitSec: "0", intervalSec: "3600" } });
  await report("disk");
  const held = async () =>
    (await sql`select from alert_groups where tenant_id = ${tenant.id} and held and due_ms > ${Date.now() + 60_000}`)
      .count;
  await expect.poll(held).toBe(1);
  await report("disk", critical);
  expect(await arrive(1)).toMatchObject([{ occasion: "first", event: { severity: 5 } }]);
});

test.each([
  ["without updates", {}],
  ["with updates", { sendUpdates: true }],
])("an opening that a silence holds is sent as one when its labels leave the silence, %s", async (_, more) => {
  const { rule, report, silence, until, arrived, server, tenant } = await groupPlace();
  await silence({ matchers: ["severity=error"] });
  await silence({ matchers: ["level=quiet"] });
  await rule("r", more);
  await report("disk");
  await until("first HELD");
  await report("disk", { ...critical, metadataFields: { level: "quiet" } });
  await consumed(server.database.sql, tenant.id);
  // The other one holds it now.
  await until("first HELD");
  expect(arrived()).toEqual([]);
  await report("disk", { ...critical, metadataFields: { level: "loud" } });
  await until("first SENT");
  expect(arrived()).toMatchObject([{ occasion: "first", severity: 5 }]);
});

test("an update that a silence holds is sent when its labels leave the silence, though nothing else has changed", async () => {
  const { rule, report, silence, until, arrived } = await groupPlace();
  await rule("r", { sendUpdates: true });
  await report("disk", { metadataFields: { level: "quiet" } });
  await until("first SENT");
  await silence({ matchers: ["level=quiet"] });
  await report("disk", { ...critical, metadataFields: { level: "quiet" } });
  await until("first SENT", "severity HELD");
  await report("disk", { ...critical, metadataFields: { level: "loud" } });
  await until("first SENT", "severity SENT");
  expect(arrived()).toMatchObject([{ severity: 4 }, { severity: 5 }]);
});
