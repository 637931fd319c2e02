import type { StaleDataSource } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { useSettled } from "../../data/settled.ts";
import { Problem } from "../../ui/problem.tsx";
import { Time } from "../../ui/time.tsx";
import ui from "../../ui/ui.module.css";
import { clauseText, findEntities } from "./names.ts";

const shownMax = 50;

/** The entities that a trigger on missing data watches. */
export function WatchedEntities({ source }: { source: StaleDataSource }) {
  const text = useSettled(clauseText(source.entityQuery?.clause));
  const answer = useAnswer((signal) => findEntities(text, shownMax, signal), text);
  const { value, loading, failure, again } = answer.value;
  return (
    <section class={`${ui.card} ${ui.preview}`} aria-labelledby="preview">
      <h2 id="preview">Entities that count</h2>
      <p class={ui.hint}>
        A preview is of events alone. These are the entities whose data would be missed, each with when it last sent
        anything.
      </p>
      <p role="status">{loading ? "Looking…" : failure ? "" : foundText(value?.total ?? 0)}</p>
      <Problem failure={failure} again={again} />
      {failure === undefined && (
        <ul class={ui.lines} aria-label="Entities">
          {value?.entities.map(({ id, displayName, livenessTime }) => (
            <li key={id}>
              <a href={linkTo(["entities", id])}>{displayName}</a>
              <span class={ui.push}>{livenessTime === 0n ? "–" : <Time at={livenessTime} short />}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function foundText(total: number): string {
  if (total === 0) return "No entity matches: nothing would be missed.";
  const text = `${total.toLocaleString("en")} ${total === 1 ? "entity" : "entities"}`;
  return total > shownMax ? `${text}; the first ${shownMax} are:` : `${text}:`;
}
