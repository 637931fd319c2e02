import { create } from "@bufbuild/protobuf";
import { useMemo } from "preact/hooks";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Entity } from "#gen/belfry/entities/v1/entity_pb.ts";
import { MaintenanceWindowSchema } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { address, goTo, linkTo } from "../data/address.ts";
import { useOne } from "../data/one.ts";
import { readEntity } from "../entities/entity-by-id.ts";
import { Problem } from "../ui/problem.tsx";
import { ScreenHead } from "../ui/screen-head.tsx";
import { timeText, zoneName } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { WindowForm } from "./form.tsx";
import { createWindow, maintenanceState, readWindow, replaceWindow } from "./one.ts";

const hourMs = 3_600_000;

/** Returns a new window: two hours from the next full hour, once; with an entity, for that entity. */
const newWindow = (entity: Entity | undefined) =>
  create(MaintenanceWindowSchema, {
    name: entity && `${entity.displayName}, ${timeText(Date.now())}`,
    schedule: {
      start: BigInt((Math.floor(Date.now() / hourMs) + 1) * hourMs),
      duration: BigInt(2 * hourMs),
      timeZone: zoneName.value,
    },
    target: { case: "query", value: entity ? { clause: clauseOfEntity(entity) } : {} },
    maintenanceState,
  });

const clauseOfEntity = ({ id }: Entity) =>
  create(ClauseSchema, {
    filter: { field: "id", operation: Operation.OP_EQUALS, value: { kind: { case: "stringValue", value: id } } },
  });

/** The form of a window that is not there yet; of the entity that the address names. */
export function NewWindow() {
  const entityId = address.value.parameters.get("entity") ?? "";
  return (
    <FormScreen title="New maintenance window">
      {entityId === "" ? <NewForm /> : <NewOfEntity key={entityId} id={entityId} />}
    </FormScreen>
  );
}

function NewOfEntity({ id }: { id: string }) {
  const answer = useOne("entity", (signal) => readEntity(id, signal));
  const { value, failure, again } = answer.value;
  return (
    <>
      <Problem failure={failure} again={again} />
      {value === null && <p>There is no such entity. It may have been deleted.</p>}
      {value && <NewForm entity={value} />}
    </>
  );
}

function NewForm({ entity }: { entity?: Entity }) {
  const stored = useMemo(() => newWindow(entity), [entity?.id]);
  return (
    <WindowForm
      stored={stored}
      id=""
      entityId={entity?.id ?? ""}
      send={createWindow}
      done={({ id }) => goTo(linkTo(["windows", id]))}
      label="Create the window"
    />
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
