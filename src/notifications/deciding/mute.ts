import type { EntityRow } from "../../entities/messages.ts";
import { keyText } from "./match-store.ts";
import type { Stage } from "./passage.ts";
import { lookAtSilenced } from "./unmute-jobs.ts";

/** Whether an entity is in a maintenance window, of which `decide` hears before it decides. */
export const inMaintenance = (entity: Pick<EntityRow, "window_production_state"> | undefined): boolean =>
  (entity?.window_production_state ?? null) !== null;

/**
 * Holds back what nobody is to hear now, before it joins a message. `decide` keeps silent about entities in maintenance by itself:
 * here the look is left that reports them when their window has ended.
 */
export const mute: Stage = ({ decided, jobs, nowMs }) => {
  const silenced = new Map(decided.map(({ rule, match }) => [`${keyText(match.subject.key)}${rule.id}`, match]));
  const entityIds = [...silenced.values()].flatMap(({ muted, subject }) => (muted ? [subject.entityId] : []));
  return entityIds.length === 0 ? {} : { jobs: [...jobs, lookAtSilenced(entityIds, nowMs)] };
};
