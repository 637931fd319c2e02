import type { MaintenanceEntity } from "#gen/belfry/maintenance/v1/maintenance_run_pb.ts";
import type { MaintenanceWindow } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import type { PreviewMaintenanceWindowResponse } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { clauseText } from "../events/query.ts";
import ui from "../ui/ui.module.css";
import windowsLook from "./windows.module.css";

interface EntitiesProps {
  readonly window: MaintenanceWindow;
  readonly preview: PreviewMaintenanceWindowResponse;
}

/** The entities that a window holds now, and those that a run would take in. */
export function EntitiesCard({ window, preview }: EntitiesProps) {
  const { target } = window;
  const clause = target.case === "query" ? target.value.clause : undefined;
  const { held, heldCount, targets } = preview;
  return (
    <section class={ui.card} aria-labelledby="entities">
      <h2 id="entities">Entities</h2>
      <h3>Held now: {heldCount.toLocaleString("en")}</h3>
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
