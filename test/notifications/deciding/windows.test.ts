import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { MaintenanceWindowSchema } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { entityId, idText } from "../../../src/entities/identity.ts";
import { createWindow } from "../../../src/maintenance/windows.ts";
import { ruleEngine } from "../../../src/notifications/deciding/engine.ts";
import { clockwork } from "../../maintenance/clockwork.ts";
import { testDatabase } from "../../support/database.ts";
import { equals, report, ruleTenant } from "../rule-tenant.ts";

const { sql } = await testDatabase();
const t0 = 1_790_000_000_000;
const minute = 60_000;

/** A tenant with a rule and a window from the tenth minute to the twentieth over one entity. */
async function withWindow(rule: { sendUpdates?: boolean; repeat?: boolean; delaySec?: number }) {
  let now = t0;
  const engine = ruleEngine(
    sql,
    () => undefined,
    () => now,
  );
  const windows = await clockwork(sql, engine.windows, t0 - minute, engine.kinds);
  const tenant = ruleTenant(sql, engine, windows.tenant.id);
  await tenant.trigger("disks", equals("name", "disk full"));
  await tenant.destination("d");
  await tenant.rule({ name: "r", triggers: ["disks"], muteDuringMaintenance: true, repeatIntervalSec: 0, ...rule });
  await tenant.rule({ name: "gone", triggers: ["disks"] });
  await windows.put("web-1", {});
  const ids = [idText(entityId(windows.tenant.id, { source: "web-1" }))];
  const window = create(MaintenanceWindowSchema, {
    name: "w",
    schedule: { start: BigInt(t0 + 10 * minute), duration: BigInt(10 * minute) },
    maintenanceState: 300,
    target: { case: "withIds", value: { ids } },
    notification: { message: "we are at work", rules: ["r", "r"] },
  });
  await windows.write(t0, (tx, writing) => createWindow(tx, window, writing));
  await tenant.deleteRule("gone");
  const at = async (minutes: number) => {
    now = t0 + minutes * minute;
    await windows.work(now);
    return now;
  };
  const told = async () =>
    (await tenant.deliveries())
      .filter(({ told }) => told.window === undefined)
      .map(({ occasion, dueMs }) => `${occasion} ${(dueMs - t0) / minute}`);
  return { tenant, at, told };
}

test("a window's message goes through its rules' destinations when it begins and ends", async () => {
  const { tenant, at } = await withWindow({});
  await at(10);
  await at(20);
  const window = { name: "w", message: "we are at work" };
  expect(await tenant.deliveries()).toMatchObject([
    {
      rule: "r",
      triggers: [],
      occasion: "first",
      createdMs: t0 + 10 * minute,
      told: { window: { ...window, what: "start" } },
    },
    {
      rule: "r",
      triggers: [],
      occasion: "clear",
      createdMs: t0 + 20 * minute,
      told: { window: { ...window, what: "end" } },
    },
  ]);
  const subjects = await sql`select distinct subject from due_deliveries where tenant_id = ${tenant.tenantId}`;
  expect(subjects).toHaveLength(1);
});

test("a muted match that still stands when the window ends notifies then; one that ended does not", async () => {
  const { tenant, at, told } = await withWindow({ sendUpdates: true });
  await at(10);
  await tenant.put(await at(11), report(1), report(1, { name: "disk full", dimensions: { source: "web-2" } }));
  await tenant.put(await at(12), report(2, { severity: 5 }));
  expect(await told()).toEqual(["first 11"]); // of the entity that is in no window
  await at(20);
  expect(await told()).toEqual(["first 11", "first 20"]);

  const other = await withWindow({ sendUpdates: true });
  await other.at(10);
  await other.tenant.put(await other.at(11), report(1));
  await other.tenant.put(await other.at(12), report(2, { status: Status.CLOSED }));
  await other.at(20);
  expect(await other.told()).toEqual([]);
});

test("what was told before is not told again but for what has changed; an end is told even then", async () => {
  const { tenant, at, told } = await withWindow({ sendUpdates: true });
  await tenant.put(t0, report(1));
  await at(10);
  await tenant.put(await at(11), report(2, { severity: 5 }));
  expect(await told()).toEqual(["first 0"]);
  await at(20);
  expect(await told()).toEqual(["first 0", "severity 20"]);

  const other = await withWindow({ sendUpdates: true });
  await other.tenant.put(t0, report(1));
  await other.at(10);
  await other.tenant.put(await other.at(11), report(2, { status: Status.CLOSED }));
  expect(await other.told()).toEqual(["first 0", "clear 11"]);
});

test("what was silenced while its window ended is found by itself", async () => {
  const { tenant, at, told } = await withWindow({});
  await at(10);
  await tenant.put(await at(11), report(1));
  await sql`update entities set window_production_state = null where tenant_id = ${tenant.tenantId}`;
  await at(12);
  expect(await told()).toEqual(["first 12"]);
});
