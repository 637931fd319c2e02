import type { MaintenanceEntity } from "#gen/belfry/maintenance/v1/maintenance_run_pb.ts";
import { type MaintenanceWindow, RunState } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import type { PreviewMaintenanceWindowResponse } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { clauseText } from "../events/query.ts";
import ui from "../ui/ui.module.css";
import windowsLook from "./windows.module.css";

interface EntitiesProps {
  readonly window: MaintenanceWindow;
  readonly preview: PreviewMaintenanceWindowResponse;
}

/** How long after its start a run without entities is still expected to take them in. */
const takingInMs = 60_000;

/** Whether a run has just begun and its entities are still to enter it. */
export function takesIn({ runState }: MaintenanceWindow, preview: PreviewMaintenanceWindowResponse): boolean {
  const { runs, heldCount, targets } = preview;
  const [first] = runs;
  const begun = runState === RunState.IN_PROGRESS && first && Date.now() - Number(first.start) < takingInMs;
  return Boolean(begun) && heldCount === 0n && (targets?.count ?? 0n) > 0n;
}

/** The entities that a window holds now, and those that a run would take in. */
export function EntitiesCard({ window, preview }: EntitiesProps) {
  const { target } = window;
  const clause = target.case === "query" ? target.value.clause : undefined;
  const { held, heldCount, targets } = preview;
  return (
    <section class={ui.card} aria-labelledby="entities">
      <h2 id="entities">Entities</h2>
      <h3>
        {takesIn(window, preview)
          ? "The run has just begun and is taking its entities in"
          : `Held now: ${heldCount.toLocaleString("en")}`}
      </h3>
      <EntityNames label="Entities that it holds now" entities={held} more={heldCount > BigInt(held.length)} />
      <h3>Would be taken in by a run that begins now: {targetsText(targets)}</h3>
      <EntityNames
        label="Entities that a run would take in"
        entities={targets?.entities ?? []}
        more={(targets?.count ?? 0n) > BigInt(targets?.entities.length ?? 0)}
      />
      {clause && (
        <p class={ui.hint}>
          <a href={linkTo(["entities"], { where: clauseText(clause) })}>All that meet its conditions</a>
        </p>
      )}
    </section>
  );
}

/** How many entities a run would take in. */
export function targetsText(targets: PreviewMaintenanceWindowResponse["targets"]): string {
  const count = (targets?.count ?? 0n).toLocaleString("en");
  return targets?.more ? `more than ${count}` : count;
}

interface NamesProps {
  readonly label: string;
  readonly entities: readonly MaintenanceEntity[];
  readonly more: boolean;
}

/** Entities by their names, each with the way to it. */
export function EntityNames({ label, entities, more }: NamesProps) {
  if (entities.length === 0) return null;
  return (
    <ul class={`${ui.links} ${windowsLook.entityNames}`} aria-label={label}>
      {entities.map(({ id, name, child }) => (
        <li key={id}>
          <a href={linkTo(["entities", id])}>{name}</a>
          {child && <span class={ui.quiet}> child</span>}
        </li>
      ))}
      {more && <li class={ui.quiet}>and more: these are the first {entities.length}</li>}
    </ul>
  );
}
