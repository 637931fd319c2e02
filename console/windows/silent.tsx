import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type MaintenanceWindow, RunState } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import type { PreviewMaintenanceWindowResponse } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { useLaterPages } from "../data/later-pages.ts";
import { Problem } from "../ui/problem.tsx";
import { Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { lookBack, lookedDays, type Muted, mutingRules, occurrencesMax, readMuted, rulesMax } from "./muted.ts";
import { UnmutedRules } from "./unmuted.tsx";

interface SilentProps {
  readonly window: MaintenanceWindow;
  readonly preview: PreviewMaintenanceWindowResponse;
}

const entitiesMax = 100;

/** The entities that a window holds, then those that it would take in. */
function entityIdsOf({ held, targets }: PreviewMaintenanceWindowResponse): string[] {
  const ids = new Set([...held, ...(targets?.entities ?? [])].map(({ id }) => id));
  return [...ids].slice(0, entitiesMax);
}

/** What rules keep and kept silent about the entities of a window. */
export function SilentCard({ window, preview }: SilentProps) {
  const ids = entityIdsOf(preview);
  const asked = `${window.id} ${window.runState} ${preview.heldCount} ${ids.join(" ")}`;
  const read = async (signal: AbortSignal) => {
    const names = await mutingRules(signal);
    const look = lookBack(ids, names);
    return { names, look, page: await readMuted(look, "", signal) };
  };
  const answer = useAnswer(read, asked, "silent");
  const { value, loading, failure, again } = answer.value;
  const later = useLaterPages(value, value?.page.next ?? "", ({ look }, cursor) => readMuted(look, cursor));
  const rows = [...(value?.page.rows ?? []), ...later.rows].toSorted((one, other) => timeOf(other) - timeOf(one));
  return (
    <section class={ui.card} aria-labelledby="silent" aria-busy={loading}>
      <h2 id="silent">Kept silent</h2>
      <Problem failure={failure} again={again} />
      <UnmutedRules preview={preview} />
      {value?.names.length === 0 && (
        <p>
          No rule keeps silent during maintenance, so this window mutes nothing. A <a href={linkTo(["rules"])}>rule</a>{" "}
          does with <code>muteDuringMaintenance</code>.
        </p>
      )}
      {value && value.names.length > 0 && (
        <>
          <RuleNames names={value.names} />
          <Found window={window} rows={rows} />
          <Problem failure={later.failure} again={later.again} />
          {later.next !== "" && (
            <div class={ui.buttons}>
              <button type="button" disabled={later.reading} onClick={() => void later.more()}>
                {later.reading ? "Looking…" : "Look at earlier occurrences"}
              </button>
            </div>
          )}
          <Reach rules={value.names.length} entities={preview.heldCount + (preview.targets?.count ?? 0n)} />
        </>
      )}
    </section>
  );
}

const timeOf = ({ time }: Muted) => (time ? timestampMs(time) : 0);

function RuleNames({ names }: { names: readonly string[] }) {
  return (
    <p>
      Rules that keep silent:{" "}
      {names.map((name, at) => (
        <span key={name}>
          {at > 0 && ", "}
          <a href={linkTo(["rules", "rules", name])}>{name}</a>
        </span>
      ))}
    </p>
  );
}

function Found({ window, rows }: { window: MaintenanceWindow; rows: readonly Muted[] }) {
  const running = window.runState === RunState.IN_PROGRESS;
  const now = rows.filter(({ fate }) => fate.is === "held");
  const before = rows.filter(({ fate }) => fate.is !== "held");
  return (
    <>
      <h3>Now</h3>
      {!running && (
        <p class={ui.quiet}>
          It does not run now, so{" "}
          {now.length === 0 ? "nothing is kept silent because of it." : "another window keeps these silent."}
        </p>
      )}
      {running && now.length === 0 && <p class={ui.quiet}>Nothing is held back now.</p>}
      <MutedList label="Kept silent now" rows={now} window={window.name} />
      <h3>Never sent</h3>
      {before.length === 0 && <p class={ui.quiet}>Nothing was left out.</p>}
      <MutedList label="Never sent" rows={before} window={window.name} />
    </>
  );
}

function MutedList({ label, rows, window }: { label: string; rows: readonly Muted[]; window: string }) {
  if (rows.length === 0) return null;
  return (
    <ul class={ui.lines} aria-label={label}>
      {rows.map((row) => (
        <li key={`${row.id} ${row.rule}`}>
          <span>
            <a href={linkTo(["occurrences", row.id])}>{row.name}</a> on{" "}
            <a href={linkTo(["entities", row.entityId])}>{row.entityName}</a>, by the rule{" "}
            <a href={linkTo(["rules", "rules", row.rule])}>{row.rule}</a>
            <Fate row={row} window={window} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function Fate({ row: { time, fate }, window }: { row: Muted; window: string }) {
  if (fate.is === "over")
    return (
      <>
        : it matched at <Time at={time} />, and was over before the maintenance ended
      </>
    );
  if (fate.is === "dropped")
    return (
      <>
        : decided at <Time at={time} />, and dropped because its delay ended in maintenance
        {fate.sent && (
          <>
            ; sent again at <Time at={fate.sent} />
          </>
        )}
      </>
    );
  return (
    <>
      {fate.update ? ": what has changed of a match from " : ", since "}
      <Time at={time} />
      {fate.window !== "" && fate.window !== window && ` (the window "${fate.window}")`}
      {fate.until && (
        <>
          , until <Time at={fate.until} due />
        </>
      )}
    </>
  );
}

/** What is looked at, and what no record says. */
function Reach({ rules, entities }: { rules: number; entities: bigint }) {
  return (
    <p class={ui.hint}>
      Looked at: the occurrences of the last {lookedDays} days, at most the latest {occurrencesMax} of an event
      {entities > BigInt(entitiesMax) && `, of the first ${entitiesMax} entities`}
      {rules > rulesMax && `, by the first ${rulesMax} of these rules`}. Deliveries are kept for{" "}
      <code>BELFRY_DELIVERY_RETENTION</code>, {lookedDays} days at least. No record names the window of a run that is
      over, so what another window over the same entities has muted is listed here too. What still matched when a run
      ended was sent then, and is among the <a href={linkTo(["deliveries"])}>deliveries</a>. Metrics and missing data
      are not looked at.
    </p>
  );
}
