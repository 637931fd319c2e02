import { create } from "@bufbuild/protobuf";
import { MaintenanceWindowSchema } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { goTo, linkTo } from "../data/address.ts";
import { useOne } from "../data/one.ts";
import { Problem } from "../ui/problem.tsx";
import { ScreenHead } from "../ui/screen-head.tsx";
import { zoneName } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { WindowForm } from "./form.tsx";
import { createWindow, readWindow, replaceWindow } from "./one.ts";

const hourMs = 3_600_000;

/** What a new window begins with: two hours from the next full hour on, once. */
const blank = () =>
  create(MaintenanceWindowSchema, {
    schedule: {
      start: BigInt((Math.floor(Date.now() / hourMs) + 1) * hourMs),
      duration: BigInt(2 * hourMs),
      timeZone: zoneName.value,
    },
    target: { case: "query", value: {} },
    maintenanceState: 300,
  });

/** The form of a window that is not there yet. */
export function NewWindow() {
  return (
    <FormScreen title="New maintenance window">
      <WindowForm
        stored={blank()}
        id=""
        send={createWindow}
        done={({ id }) => goTo(linkTo(["windows", id]))}
        label="Create the window"
      />
    </FormScreen>
  );
}

/** The form of a window that is there. */
export function ChangedWindow({ id }: { id: string }) {
  const answer = useOne("stored window", (signal) => readWindow(id, signal));
  const { value, failure, again } = answer.value;
  return (
    <FormScreen title={value ? `Change ${value.name}` : "Change a maintenance window"}>
      <Problem failure={failure} again={again} />
      {value === null && <p>There is no such maintenance window. It may have been deleted.</p>}
      {value && (
        <WindowForm
          stored={value}
          id={id}
          send={(next) => replaceWindow(value, next)}
          done={() => goTo(linkTo(["windows", id]))}
          label="Save the window"
        />
      )}
    </FormScreen>
  );
}

function FormScreen({ title, children }: { title: string; children: preact.ComponentChildren }) {
  return (
    <div class={ui.screen}>
      <ScreenHead title={title} above={["Maintenance", linkTo(["windows"])]} />
      <div class={ui.scroll}>{children}</div>
    </div>
  );
}
