import { RunModeSchema, RunStateSchema, WindowStatusSchema } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import type { Field, FieldValue, Resolver } from "../clause/field.ts";
import { textArray } from "../db/batch.ts";
import type { WindowRow } from "./messages.ts";

type WindowField = Field<WindowRow>;

const numbersOf = ({ values }: { values: readonly { name: string; number: number }[] }) =>
  Object.fromEntries(values.map(({ name, number }) => [name, number]));

type Key<Value> = { [K in keyof WindowRow]: WindowRow[K] extends Value ? K : never }[keyof WindowRow];

const textField = (column: string, key: Key<string>): WindowField => ({
  type: "text",
  sql: (db) => db`${db(column)}`,
  get: (row) => row[key],
});
const truth = (column: string, key: Key<boolean>): WindowField => ({
  type: "boolean",
  sql: (db) => db`${db(column)}`,
  get: (row) => row[key],
});
const number = (column: string, key: Key<number | bigint | null>, numbers?: Record<string, number>): WindowField => ({
  type: "bigint",
  sql: (db) => db`${db(column)}`,
  get: (row) => (row[key] === null ? undefined : Number(row[key])),
  ...(numbers && { numbers }),
});
/** A member of a JSON column, by its path. */
const json = (
  column: string,
  key: "tags" | "schedule" | "notification",
  path: readonly string[] = [],
): WindowField => ({
  type: "json",
  sql: (db) => db`(${db(column)} #> ${textArray(path)}::text[])`,
  get: (row) =>
    path.reduce<unknown>((value, part) => (value as Record<string, unknown> | null)?.[part], row[key]) as FieldValue,
});

const scheduleFields = ["start", "duration", "timeZone"];
const recurrenceFields = ["type", "interval", "dayOfWeek", "dayOfMonth", "month", "year", "cronMinutes", "cronHours"];

/** The members of a window that searches know, by the names that answers give them. */
const fields: Readonly<Record<string, WindowField>> = {
  id: textField("id", "id"),
  name: textField("name", "name"),
  description: textField("description", "description"),
  owner: textField("owner", "owner"),
  createdBy: textField("created_by", "createdBy"),
  updatedBy: textField("updated_by", "updatedBy"),
  createTime: number("created_ms", "createdMs"),
  updateTime: number("updated_ms", "updatedMs"),
  runMode: number("run_mode", "runMode", numbersOf(RunModeSchema)),
  status: number("status", "status", numbersOf(WindowStatusSchema)),
  runState: number("run_state", "runState", numbersOf(RunStateSchema)),
  nextStart: number("next_start_ms", "nextStartMs"),
  maintenanceState: number("maintenance_state", "maintenanceState"),
  exitState: number("exit_state", "exitState"),
  deleted: { type: "boolean", sql: (db) => db`false`, get: () => false },
  overrideExitState: truth("override_exit_state", "overrideExitState"),
  force: truth("force", "force"),
  doNotPropagateToChildren: truth("do_not_propagate_to_children", "doNotPropagateToChildren"),
  tags: json("tags", "tags"),
  "notification.message": json("notification", "notification", ["message"]),
  "notification.rules": json("notification", "notification", ["rules"]),
  "schedule.skipNext": number("skip_next", "skipNext"),
  ...Object.fromEntries(scheduleFields.map((name) => [`schedule.${name}`, json("schedule", "schedule", [name])])),
  ...Object.fromEntries(
    recurrenceFields.map((name) => [`schedule.recurrence.${name}`, json("schedule", "schedule", ["recurrence", name])]),
  ),
};

/** How clauses read windows: members by their names, those of `schedule` and `notification` after it and a dot. */
export function windowResolver(tenantName: string): Resolver<WindowRow> {
  return {
    field(name) {
      if (name === "tenant") return { type: "text", sql: (db) => db`${tenantName}::text`, get: () => tenantName };
      return Object.hasOwn(fields, name) ? fields[name] : undefined;
    },
    withIds: (db, ids) => db`id = any(${textArray(ids)}::text[])`,
    idsOf: ({ id }) => [id],
  };
}
