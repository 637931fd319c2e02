import { allMatch, type LabelMatcher, readMatchers } from "../../clause/label-matcher.ts";
import { labelPattern } from "../../clause/label-pattern.ts";
import { annotationsOf, fingerprintOf, isAlert, labelOf } from "../../events/labels.ts";
import type { OpenAlert } from "../../events/open-alerts.ts";
import type { AlertState, AlertStates } from "../../notifications/silences/alert-states.ts";
import { invalidValue } from "../../wire/status.ts";
import type { OperationCall } from "../integration.ts";
import { timeText } from "./times.ts";

/** The receiver of what no rule matches: rules decide where notifications go. */
export const receiver = { name: "belfry" };

const suppressed = 2;
const stillMs = 300_000; // how long an alert without an end is believed, as Alertmanager's resolve_timeout
const filtersMax = 100;

/** Which alerts a query asks for. @throws code 3 */
export function asked({ query }: Pick<OperationCall, "query">): (alert: ReturnType<typeof shown>) => boolean {
  const { active, silenced } = flagsOf(query, ["active", "silenced", "inhibited", "unprocessed", "muted"]);
  const matchers = filtersOf(query);
  const wanted = query.get("receiver");
  const isReceiver = wanted ? receivers(wanted) : () => true;
  return ({ labels, status, receivers }) =>
    receivers.some(({ name }) => isReceiver(name)) &&
    (status.state === "active" ? active : silenced) &&
    allMatch(matchers, (name) => labelOf(labels, name));
}

/** Reads parameters that are true or false, and true where they are left out. @throws code 3 */
export function flagsOf<Name extends string>(query: URLSearchParams, names: readonly Name[]): Record<Name, boolean> {
  const flag = (name: Name) => {
    const text = query.get(name) ?? "true";
    if (!/^(?:true|false|1|0|t|f)$/i.test(text)) throw invalidValue(name, "must be true or false");
    return /^(?:true|1|t)$/i.test(text);
  };
  return Object.fromEntries(names.map((name) => [name, flag(name)])) as Record<Name, boolean>;
}

/** Reads the parameters `filter`, a matcher each. @throws code 3 */
export function filtersOf(query: URLSearchParams): LabelMatcher[] {
  const filters = query.getAll("filter");
  if (filters.length > filtersMax) throw invalidValue("filter", `must be given at most ${filtersMax} times`);
  return readMatchers(filters, "filter");
}

function receivers(expression: string): (name: string) => boolean {
  const pattern = labelPattern(expression);
  if ("reason" in pattern) throw invalidValue("receiver", "must be a regular expression of RE2's syntax");
  return pattern.matches;
}

/**
 * An open occurrence as Alertmanager shows it. One that came as an alert ends when it expires; one that came as webhook, or otherwise,
 * has no end yet.
 */
export function shown({ event, occurrence, labels }: OpenAlert, state: AlertState, nowMs: number) {
  const { expiresMs, startMs, lastSeenMs, status } = occurrence;
  const cameAsAlert = isAlert(event, occurrence);
  const { annotations, generatorURL } = annotationsOf(event, occurrence);
  const { silencedBy, receivers } = state;
  const isSuppressed = status === suppressed || silencedBy.length > 0;
  return {
    annotations,
    endsAt: timeText(cameAsAlert && expiresMs !== null ? Number(expiresMs) : nowMs + stillMs),
    fingerprint: fingerprintOf(event, cameAsAlert),
    receivers: receivers.length === 0 ? [receiver] : receivers.map((name) => ({ name })),
    startsAt: timeText(Number(startMs)),
    status: { inhibitedBy: [], silencedBy, state: isSuppressed ? "suppressed" : "active" },
    updatedAt: timeText(Number(lastSeenMs)),
    generatorURL,
    labels,
  };
}

/** The texts of a JSON list of the alerts that a query asks for; `around` wraps them where there are any. */
export async function* listing(
  pages: AsyncIterable<readonly OpenAlert[]>,
  states: AlertStates,
  isAsked: ReturnType<typeof asked>,
  { nowMs, pace }: Pick<OperationCall, "nowMs" | "pace">,
  around: readonly [before: string, after: string] = ["", ""],
): AsyncGenerator<string> {
  let count = 0;
  for await (const page of pages) {
    const texts: string[] = [];
    const found = await states(page, nowMs(), pace);
    for (const [i, alert] of page.entries()) {
      const wait = pace();
      if (wait !== undefined) await wait;
      const now = nowMs();
      const each = shown(alert, found[i] as AlertState, now);
      if (isAsked(each) && Date.parse(each.endsAt) > now) texts.push(JSON.stringify(each));
    }
    if (texts.length === 0) continue;
    yield `${count === 0 ? `[${around[0]}` : ","}${texts.join(",")}`;
    count += texts.length;
  }
  yield count === 0 ? "[]\n" : `${around[1]}]\n`;
}
