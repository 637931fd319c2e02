import { create } from "@bufbuild/protobuf";
import { ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import {
  type MaintenanceWindow,
  MaintenanceWindowSchema,
  WindowQuerySchema,
} from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { clientOf } from "../data/calls.ts";
import { say } from "../data/notice.ts";
import { askRunningWindows } from "../data/running-windows.ts";
import { forgetDraft } from "../form/kept-draft.ts";
import { sameWritten } from "../form/written.ts";

const windows = clientOf(MaintenanceWindowService);

/** The production state that a new window gives to its entities. */
export const maintenanceState = 300;

/**
 * Names the draft of a window's form.
 * @param id empty for a new one
 * @param entityId entity that a new window is for
 */
export const draftOf = (id: string, entityId = "") => `window/${id || `new${entityId && `/${entityId}`}`}`;

/** A window by its id; null: there is none. */
export async function readWindow(id: string, signal?: AbortSignal): Promise<MaintenanceWindow | null> {
  const searchInput = { query: { clause: create(ClauseSchema, { withIds: { ids: [id] } }) } };
  const found = await windows.searchMaintenanceWindows({ searchInput }, signal ? { signal } : {});
  return found.maintWindows[0] ?? null;
}

/** Starts a run, and says so; taking it back ends the run. */
export async function startNow({ id, name }: MaintenanceWindow, changed: () => void): Promise<void> {
  await windows.startMaintenanceWindow({ id });
  changed();
  void askRunningWindows();
  say(`"${name}" runs now.`, async () => {
    await windows.stopMaintenanceWindow({ id });
    changed();
    void askRunningWindows();
  });
}

/** Ends the run that goes on. Nothing gives back the rest of it: another start is a run of the whole duration. */
export async function endNow({ id, name }: MaintenanceWindow, changed: () => void): Promise<void> {
  await windows.stopMaintenanceWindow({ id });
  changed();
  void askRunningWindows();
  say(`The run of "${name}" has ended; its entities go back to their states.`);
}

/** Deletes a window, and says so; taking it back creates it again, with another id. */
export async function deleteWindow(window: MaintenanceWindow): Promise<void> {
  await windows.deleteMaintenanceWindows({ ids: [window.id] });
  forgetDraft(draftOf(window.id));
  say(`The window "${window.name}" was deleted.`, () =>
    windows.createMaintenanceWindow({ specification: { ...window, etag: "" } }),
  );
}

/**
 * Replaces a window, and says so; taking it back writes what it was, unless another person has changed it since.
 * @param before the window as this page has opened it
 */
export async function replaceWindow(before: MaintenanceWindow, sent: MaintenanceWindow): Promise<MaintenanceWindow> {
  const { id } = before;
  await windows.replaceMaintenanceWindow({ id, specification: sent });
  const now = await readWindow(id);
  const undo = () => windows.replaceMaintenanceWindow({ id, specification: { ...before, etag: now?.etag ?? "" } });
  const text = `The window "${sent.name}" was changed.`;
  // What was saved over another person's change has no former state here.
  if (before.etag !== sent.etag) say(text);
  // The answer to a save names no etag: what is read after it has that of what was saved only where it says the same.
  else if (now !== null && sameWritten(MaintenanceWindowSchema, plain(sent), plain(now))) say(text, undo);
  else say(`${text} What stands now is not what was sent, so it cannot be taken back.`);
  return now ?? sent;
}

/** A window without what the service adds within its parts. */
function plain({ target, schedule, ...rest }: MaintenanceWindow): MaintenanceWindow {
  const clause = target.case === "query" ? target.value.clause : undefined;
  return create(MaintenanceWindowSchema, {
    ...rest,
    target: { case: "query", value: create(WindowQuerySchema, clause ? { clause } : {}) },
    ...(schedule && { schedule: { ...schedule, timeZone: schedule.timeZone || "UTC" } }),
  });
}

/** Creates a window, and says so; taking it back deletes it. */
export async function createWindow(specification: MaintenanceWindow): Promise<MaintenanceWindow> {
  const { id } = await windows.createMaintenanceWindow({ specification });
  say(`The window "${specification.name}" was made.`, () => windows.deleteMaintenanceWindows({ ids: [id] }));
  return { ...specification, id };
}
