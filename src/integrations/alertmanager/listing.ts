import { alertOfMetadata, fingerprintOf, labelView } from "../../events/labels.ts";
import type { OpenAlert } from "../../events/open-alerts.ts";
import { invalidValue } from "../../wire/status.ts";
import type { Call } from "../integration.ts";
import { anchored, type Matcher, parseMatcher } from "./matchers.ts";
import { timeText } from "./times.ts";

/** The name of the one receiver: rules decide where notifications go. */
export const receiver = { name: "belfry" };

const suppressed = 2;
const stillMs = 300_000; // how long an alert without an end is believed, as Alertmanager's resolve_timeout
const filtersMax = 100;

/** Which alerts a query asks for. @throws code 3 */
export function asked({ query }: Pick<Call, "query">): (alert: ReturnType<typeof shown>) => boolean {
  const flag = (name: string) => {
    const text = query.get(name) ?? "true";
    if (!/^(?:true|false|1|0|t|f)$/i.test(text)) throw invalidValue(name, "must be true or false");
    return /^(?:true|1|t)$/i.test(text);
  };
  const [active, silenced] = [flag("active"), flag("silenced")];
  flag("inhibited");
  flag("unprocessed");
  const filters = query.getAll("filter");
  if (filters.length > filtersMax) throw invalidValue("filter", `must be given at most ${filtersMax} times`);
  const matchers: Matcher[] = filters.map(parseMatcher);
  const wanted = query.get("receiver");
  const here = !wanted || anchored(wanted)(receiver.name);
  return ({ labels, status }) =>
    here && (status.state === "active" ? active : silenced) && matchers.every((matches) => matches(labels));
}

/** An alert as Alertmanager shows it. It ends when it expires; one that came as webhook has no end yet. */
export function shown({ event, occurrence }: OpenAlert, nowMs: number) {
  const { annotations, generatorURL } = alertOfMetadata(occurrence.metadata);
  const { expiresMs, startMs, lastSeenMs, status } = occurrence;
  return {
    annotations,
    endsAt: timeText(expiresMs === null ? nowMs + stillMs : Number(expiresMs)),
    fingerprint: fingerprintOf(event),
    receivers: [receiver],
    startsAt: timeText(Number(startMs)),
    status: { inhibitedBy: [], silencedBy: [], state: status === suppressed ? "suppressed" : "active" },
    updatedAt: timeText(Number(lastSeenMs)),
    generatorURL,
    labels: labelView({ kind: "occurrence", event, occurrence, dimensions: {} }),
  };
}

/** The texts of a JSON list of the alerts that a query asks for; `around` wraps them where there are any. */
export async function* listing(
  pages: AsyncIterable<readonly OpenAlert[]>,
  isAsked: ReturnType<typeof asked>,
  { nowMs, pace }: Pick<Call, "nowMs" | "pace">,
  around: readonly [before: string, after: string] = ["", ""],
): AsyncGenerator<string> {
  let count = 0;
  for await (const page of pages) {
    const texts: string[] = [];
    for (const alert of page) {
      const wait = pace();
      if (wait !== undefined) await wait;
      const now = nowMs();
      const each = shown(alert, now);
      if (isAsked(each) && Date.parse(each.endsAt) > now) texts.push(JSON.stringify(each));
    }
    if (texts.length === 0) continue;
    yield `${count === 0 ? `[${around[0]}` : ","}${texts.join(",")}`;
    count += texts.length;
  }
  yield count === 0 ? "[]\n" : `${around[1]}]\n`;
}
