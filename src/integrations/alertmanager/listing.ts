import {
  answerOf,
  type ComparisonResult,
  compareExpression,
  countExpression,
  decided,
  type ExpressionCount,
  type Later,
  newExpressionCount,
  readExpression,
} from "../../clause/expression.ts";
import { type LabelMatcher, readMatchers } from "../../clause/label-matcher.ts";
import { exhausted } from "../../errors.ts";
import type { Pace } from "../../event-loop.ts";
import { annotationsOf, fingerprintOf, isAlert } from "../../events/labels.ts";
import type { OpenAlert } from "../../events/open-alerts.ts";
import type { AlertGroup, AlertState, AlertStates } from "../../notifications/api/silences/alert-states.ts";
import { invalidValue } from "../../wire/status.ts";
import type { OperationCall } from "../integration.ts";
import { timeText } from "./times.ts";

/** The receiver of what no rule matches: rules decide where notifications go. */
export const receiver = { name: "belfry" };

const suppressed = 2;
const stillMs = 300_000; // how long an alert without an end is believed, as Alertmanager's resolve_timeout
const filtersMax = 100;

/** What a query asks of alerts: first of their labels, then of how notifications about them stand. */
interface AskedAlerts {
  matchers: readonly LabelMatcher[];
  isAsked(alert: ReturnType<typeof shown>): Promise<boolean>;
}

/** Which alerts a query asks for. @throws code 3 */
export function asked({ query, pace }: Pick<OperationCall, "query" | "pace">): AskedAlerts {
  const { active, silenced } = flagsOf(query, ["active", "silenced", "inhibited", "unprocessed", "muted"]);
  const count = newExpressionCount();
  const matchers = filtersOf(query, count);
  const wanted = query.get("receiver");
  const isReceiver = wanted ? receivers(wanted, count) : () => true;
  return {
    matchers,
    async isAsked({ status, receivers }) {
      if (!(status.state === "active" ? active : silenced)) return false;
      return decided(await answerOf(receivers, ({ name }) => isReceiver(name, pace), true), "receiver");
    },
  };
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
export function filtersOf(query: URLSearchParams, count: ExpressionCount = newExpressionCount()): LabelMatcher[] {
  const filters = query.getAll("filter");
  if (filters.length > filtersMax) throw invalidValue("filter", `must be given at most ${filtersMax} times`);
  return readMatchers(filters, "filter", count);
}

const receiverCharactersMax = 1000;

function receivers(text: string, count: ExpressionCount): (name: string, pace: Pace) => Later<ComparisonResult> {
  if (text.length > receiverCharactersMax)
    throw invalidValue("receiver", `must have at most ${receiverCharactersMax} characters`);
  const expression = readExpression(text, true);
  if (expression.refusal !== undefined)
    throw invalidValue("receiver", `must be a regular expression of RE2's syntax: ${expression.refusal.reason}`);
  countExpression(count, expression, "receiver");
  return (name, pace) => compareExpression(expression, name, pace);
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

/** Alerts that a query asks for, each as it is shown. */
type Asked = ReturnType<typeof shown>;

/** Reads the alerts that a query asks for, in pages. */
async function* pagesOf(
  pages: AsyncIterable<readonly OpenAlert[]>,
  states: AlertStates,
  isAsked: AskedAlerts["isAsked"],
  { nowMs, pace }: Pick<OperationCall, "nowMs" | "pace">,
): AsyncGenerator<{ alert: Asked; state: AlertState }[]> {
  for await (const page of pages) {
    const found: { alert: Asked; state: AlertState }[] = [];
    const all = await states(page, nowMs(), pace);
    for (const [i, open] of page.entries()) {
      const wait = pace();
      if (wait !== undefined) await wait;
      const now = nowMs();
      const state = all[i] as AlertState;
      const alert = shown(open, state, now);
      if ((await isAsked(alert)) && Date.parse(alert.endsAt) > now) found.push({ alert, state });
    }
    if (found.length > 0) yield found;
  }
}

/** The texts of a JSON list of the alerts that a query asks for. */
export async function* listing(...asking: Parameters<typeof pagesOf>): AsyncGenerator<string> {
  let count = 0;
  for await (const page of pagesOf(...asking)) {
    yield `${count === 0 ? "[" : ","}${page.map(({ alert }) => JSON.stringify(alert)).join(",")}`;
    count += page.length;
  }
  yield count === 0 ? "[]\n" : "]\n";
}

/** What is held of groups until the last of their alerts is read. */
const heldBytesMax = 64 * 1024 * 1024;

/**
 * The texts of a JSON list of the groups of these alerts: one for each destination of a rule that groups, and one without labels of all
 * others, which are not held. @throws code 8 when there is more than an answer may hold
 */
export async function* groupListing(...asking: Parameters<typeof pagesOf>): AsyncGenerator<string> {
  const groups = new Map<string, { group: AlertGroup; alerts: string[] }>();
  let bytes = 0;
  let count = 0;
  for await (const page of pagesOf(...asking)) {
    const others: string[] = [];
    for (const { alert, state } of page) {
      const text = JSON.stringify(alert);
      if (state.groups.length === 0) others.push(text);
      for (const group of state.groups) {
        const key = JSON.stringify([group.receiver, group.labels]);
        const held = groups.get(key) ?? { group, alerts: [] };
        groups.set(key, held);
        held.alerts.push(text);
        bytes += text.length;
      }
      if (bytes > heldBytesMax)
        throw exhausted(`the groups would hold more than ${heldBytesMax} bytes: ask for less with filter`);
    }
    if (others.length === 0) continue;
    yield `${count === 0 ? `[${groupText({ labels: {}, receiver: receiver.name })}` : ","}${others.join(",")}`;
    count += others.length;
  }
  if (count > 0) yield "]}";
  for (const { group, alerts } of groups.values()) {
    yield `${count === 0 ? "[" : ","}${groupText(group)}${alerts.join(",")}]}`;
    count += alerts.length;
  }
  yield count === 0 ? "[]\n" : "]\n";
}

const groupText = ({ labels, receiver: name }: AlertGroup) =>
  `{"labels":${JSON.stringify(labels)},"receiver":${JSON.stringify({ name })},"alerts":[`;
