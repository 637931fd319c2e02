import { bigint, boolean, index, integer, pgTable, primaryKey, smallint, unique } from "drizzle-orm/pg-core";
import type { RunMode, RunState, WindowStatus } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { bigintMs, bytea, jsonb, tenantId, text } from "../db/columns.ts";

/** One row a maintenance window: its specification, and what it is doing. */
export const maintenanceWindows = pgTable(
  "maintenance_windows",
  {
    tenantId: tenantId(),
    id: text("id").notNull(),
    name: text("name").notNull(),
    description: text("description").notNull(),
    owner: text("owner").notNull(),
    tags: jsonb("tags").notNull().$type<string[]>(),
    /** The clause of its entities, and its schedule, in the JSON forms of the API; the schedule without `skipNext`. */
    clause: jsonb("clause").notNull(),
    schedule: jsonb("schedule").notNull(),
    /** In the JSON form of the API, or null. */
    notification: jsonb("notification"),
    runMode: smallint("run_mode").notNull().$type<RunMode>(),
    status: smallint("status").notNull().$type<WindowStatus>(),
    maintenanceState: integer("maintenance_state").notNull(),
    exitState: integer("exit_state").notNull(),
    overrideExitState: boolean("override_exit_state").notNull(),
    force: boolean("force").notNull(),
    doNotPropagateToChildren: boolean("do_not_propagate_to_children").notNull(),
    createdMs: bigintMs("created_ms").notNull(),
    updatedMs: bigintMs("updated_ms").notNull(),
    createdBy: text("created_by").notNull(),
    updatedBy: text("updated_by").notNull(),
    runState: smallint("run_state").notNull().$type<RunState>(),
    /** How many of the next runs are still to be skipped. */
    skipNext: integer("skip_next").notNull(),
    /** The last start by the schedule that is behind: its run has begun, was skipped, or came too late. */
    handledMs: bigintMs("handled_ms"),
    /** The next start by the schedule, skipped or not; null: none, or the window may not run by itself. */
    nextDueMs: bigintMs("next_due_ms"),
    /** The next start by the schedule that is not skipped. */
    nextStartMs: bigintMs("next_start_ms"),
    /** The start of the run that goes on, or of the last one. No two runs of a window have the same. */
    runStartMs: bigintMs("run_start_ms"),
    /** When the run that goes on ends. */
    runEndMs: bigintMs("run_end_ms"),
    /** Raised by each start, and by each change of what goes on. */
    version: bigint("version", { mode: "bigint" }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    unique("maintenance_windows_name").on(table.tenantId, table.name),
  ],
);

/** Entities that a run has still to take in: ids put one after the other, a row a portion. */
export const maintenanceTargets = pgTable(
  "maintenance_targets",
  {
    tenantId: tenantId(),
    windowId: text("window_id").notNull(),
    place: bigint("place", { mode: "bigint" }).notNull(),
    ids: bytea("ids").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.windowId, table.place] })],
);

/** One row an entity and open window: written under the entity's lock. It goes when the entity leaves the window. */
export const maintenanceMembers = pgTable(
  "maintenance_members",
  {
    tenantId: tenantId(),
    entityId: bytea("entity_id").notNull(),
    windowId: text("window_id").notNull(),
    /** The run that the entity is in, and the version of it that has taken it in. */
    runStartMs: bigintMs("run_start_ms").notNull(),
    version: bigint("version", { mode: "bigint" }).notNull(),
    state: integer("state").notNull(),
    /** The state to go to when it leaves; null: back to its own. */
    exitState: integer("exit_state"),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.entityId, table.windowId] }),
    index("maintenance_members_window").on(table.tenantId, table.windowId, table.runStartMs, table.version),
  ],
);
