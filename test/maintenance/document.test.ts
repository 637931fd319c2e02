import { readFileSync } from "node:fs";
import { create, fromJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import {
  MaintenanceWindowSchema,
  RecurrenceSchema,
  ScheduleSchema,
} from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { entityId, idText } from "../../src/entities/identity.ts";
import { nextStartMs } from "../../src/maintenance/recurrence.ts";
import { windowPlanOf } from "../../src/maintenance/schedule.ts";
import { createWindow } from "../../src/maintenance/windows.ts";
import { testDatabase } from "../support/database.ts";
import { clockwork } from "./clockwork.ts";

const text = readFileSync(new URL("../../docs/maintenance.md", import.meta.url), "utf8");
const rowsOf = (lines: string) =>
  [...lines.matchAll(/^\|(.*)\|$/gm)].map(([, row]) => (row as string).split("|").map((cell) => cell.trim()));

describe("docs/maintenance.md: the runs of each schedule are those that stand beside it", () => {
  const examples = rowsOf(text).filter(([first]) => first?.startsWith('`{"type"'));

  test("there are some of each kind", () => {
    expect(new Set(examples.map(([first]) => /\d/.exec(first ?? "")?.[0])).size).toBe(6);
  });

  test.each(examples)("%s in %s from %s", (recurrence = "", zone = "", start = "", runs = "") => {
    const schedule = create(ScheduleSchema, {
      start: BigInt(Date.parse(start)),
      duration: 1n,
      timeZone: zone.replaceAll("`", ""),
      recurrence: fromJson(RecurrenceSchema, JSON.parse(recurrence.replaceAll("`", ""))),
    });
    const plan = windowPlanOf(schedule);
    const expected = runs.split(", ");
    const found: string[] = [];
    for (let ms = 0; found.length < expected.length; ms += 1) {
      ms = nextStartMs(plan, ms) as number;
      found.push(new Date(ms).toISOString().replace(":00.000Z", "Z"));
    }
    expect(found).toEqual(expected);
  });
});

describe("docs/maintenance.md: what happens to an entity is what its timelines say", async () => {
  const { sql } = await testDatabase();
  const timelines = text.split(/^Windows: /m).slice(1);
  const timeOf = (clock: string) => Date.parse(`2027-01-01T${clock}Z`);

  test.each(timelines.map((all) => [all.split("\n", 1)[0], all]))("%s", async (_, timeline = "") => {
    const [windows = "", ...rest] = timeline.split("\n\n");
    const rows = rowsOf(rest[0] ?? "").filter(([time]) => /^\d/.test(time ?? ""));
    expect(rows.length).toBeGreaterThan(3);
    const beginMs = timeOf(rows[0]?.[0] ?? "") - 60_000;
    const service = await clockwork(sql, {}, beginMs);
    await service.put("host", {});
    const described = windows.matchAll(
      /"(\w)" from ([\d:]+) to ([\d:]+) with state (\d+)(?:, and `exitState` (\d+))?/g,
    );
    for (const [, name = "", from = "", to = "", state, exit] of described) {
      const specification = fromJson(MaintenanceWindowSchema, {
        name,
        schedule: { start: timeOf(from), duration: timeOf(to) - timeOf(from) },
        maintenanceState: Number(state),
        ...(exit && { exitState: Number(exit), overrideExitState: true }),
        withIds: { ids: [idText(entityId(service.tenant.id, { source: "host" }))] },
      });
      await service.write(beginMs, (tx, writing) => createWindow(tx, specification, writing));
    }
    let running = true;
    const seen: string[][] = [];
    for (const [time = "", what = ""] of rows) {
      const named = /names (\d+)/.exec(what);
      if (named) await service.put("host", { productionState: Number(named[1]) });
      if (what.includes("servers run again")) running = true;
      if (running) await service.work(timeOf(time));
      if (what.includes("server stops")) running = false;
      seen.push([time, what, String((await service.states()).host)]);
    }
    expect(seen).toEqual(rows);
  });
});
