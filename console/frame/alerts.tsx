import { useRef } from "preact/hooks";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService, SortOrder } from "#gen/belfry/events/v1/query_service_pb.ts";
import { goTo, linkTo } from "../data/address.ts";
import { alerts, alertsOn, browserShows, chooseAlerts, notify } from "../data/alerts.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { inSight } from "../data/in-sight.ts";
import { unlessSeen, watchesHere } from "../data/live.ts";
import { useNews } from "../data/news.ts";
import { session } from "../data/session.ts";
import { calledOf } from "../events/entity-names.ts";
import ui from "../ui/ui.module.css";
import { marked } from "./marked-texts.ts";
import { unacknowledged } from "./unacknowledged.ts";

const events = clientOf(EventQueryService);
/** The shortest time between two notifications. */
const everyMs = 5000;
const knownMax = 500;
/** The most occurrences that one notification names; it counts the others. */
const namedMax = 4;

/** The newest critical occurrences that nobody has taken on. */
const query = {
  ...unacknowledged,
  severities: [Severity.CRITICAL],
  sortBy: [{ byField: { field: "startTime", order: SortOrder.DESC } }],
  pageInput: { limit: knownMax },
  fields: ["name", "entityName", "startTime"].map((field) => ({ field })),
};

/** Notifies of critical occurrences while no tab is in sight: the tab that watches does so for all. */
export function Alerts() {
  return alertsOn.value && watchesHere.value && !inSight.value ? <Unseen key={session.value?.id} /> : null;
}

interface Critical {
  readonly id: string;
  readonly name: string;
  readonly entity: string;
  readonly startTime: bigint;
}

interface Known {
  readonly ids: ReadonlySet<string>;
  /** Those that began before this were not all read. */
  readonly since: bigint;
}

/** Notifies of what comes from now on. */
function Unseen() {
  const news = useNews(everyMs);
  const known = useRef<Known>(undefined);
  useAnswer(async (signal) => {
    news.value;
    const { results, pageInfo } = await events.searchEvents({ query }, { signal });
    if (signal.aborted) return;
    const found = results.flatMap(({ name = "", occurrences, ...event }) =>
      occurrences.map(({ id, startTime = 0n }): Critical => ({ id, name, entity: calledOf(event), startTime })),
    );
    const before = known.current;
    const since = (pageInfo?.hasNext && found.at(-1)?.startTime) || 0n;
    known.current = { ids: new Set(found.map(({ id }) => id)), since };
    if (before === undefined) return;
    const fresh = found.filter(({ id, startTime }) => !before.ids.has(id) && startTime >= before.since);
    if (fresh.length > 0) await unlessSeen(() => tell(fresh));
  });
  return null;
}

function tell(fresh: readonly Critical[]): void {
  const [only, ...others] = fresh;
  if (only !== undefined && others.length === 0) {
    notify(marked(`Critical: ${only.name}`), marked(only.entity), () => goTo(linkTo(["occurrences", only.id])));
    return;
  }
  const named = fresh.slice(0, namedMax).map(({ name, entity }) => `${name} · ${entity}`);
  const rest = fresh.length - named.length;
  const body = [...named, ...(rest > 0 ? [`and ${rest.toLocaleString("en")} more`] : [])].join("\n");
  notify(`${fresh.length.toLocaleString("en")} critical occurrences`, marked(body), () => goTo(linkTo(["events"])));
}

const refusals: Readonly<Partial<Record<typeof browserShows.value, string>>> = {
  none: "This browser shows no notifications of pages.",
  unable: "This browser shows no notifications of pages.",
  default: "The browser has not been allowed to show them: choose again, and answer its question.",
  denied: "The browser refuses to show them: allow notifications of this address in its settings.",
};

/** Chooses whether this browser notifies, and says why it does not. */
export function AlertsChoice() {
  const refusal = alerts.value === "off" ? undefined : refusals[browserShows.value];
  return (
    <>
      <label>
        Notify while hidden
        <select
          value={alerts.value}
          onChange={({ currentTarget }) => void chooseAlerts(currentTarget.value as typeof alerts.value)}
        >
          <option value="off">Off</option>
          <option value="critical">Critical</option>
        </select>
      </label>
      <p class={ui.hint} role="status">
        {refusal}
      </p>
    </>
  );
}
