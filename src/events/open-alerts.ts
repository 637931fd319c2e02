import { decided } from "../clause/expression.ts";
import { allMatch, type LabelMatcher } from "../clause/label-matcher.ts";
import type { Db } from "../db/connect.ts";
import { readDimensions } from "../entities/read.ts";
import { exhausted } from "../errors.ts";
import type { Pace } from "../event-loop.ts";
import { candidatesOfQuery } from "./candidate-sources.ts";
import { choice, someCandidates } from "./candidates.ts";
import type { EventIdentity } from "./fields.ts";
import { type LabelView, labelOf, labelView } from "./labels.ts";
import type { Occurrence } from "./lifecycle.ts";
import { findOccurrences, type OccurrenceKey, occurrenceText } from "./occurrences.ts";

/** An occurrence that is open, with its event and its labels. */
export interface OpenAlert {
  event: EventIdentity;
  occurrence: Occurrence;
  labels: LabelView;
}

const alertsMax = 200_000;
const pageAlerts = 500;

/** What is asked of the labels of open occurrences. */
export interface AskedLabels {
  /** All of them hold. */
  matchers: readonly LabelMatcher[];
  /** Their place in the request, for errors. */
  path: string;
  pace: Pace;
}

/**
 * Reads the open occurrences that matchers match, in pages. What closes meanwhile may be missing, and so may what opens.
 * @throws code 8 when there are more than an answer may hold; code 3 where a matcher is undecided
 */
export async function* openAlerts(
  db: Db,
  tenantId: string,
  { matchers, path, pace }: AskedLabels,
): AsyncGenerator<OpenAlert[]> {
  const keys = await openKeys(db, tenantId, matchers);
  keys.sort((a, b) => Buffer.compare(a.eventId, b.eventId));
  for (let from = 0; from < keys.length; from += pageAlerts) {
    const page = await readAlerts(db, tenantId, keys.slice(from, from + pageAlerts));
    const matching: OpenAlert[] = [];
    for (const alert of page) {
      const turn = pace();
      if (turn !== undefined) await turn;
      const answer = await allMatch(matchers, (name) => labelOf(alert.labels, name), pace);
      if (decided(answer, path)) matching.push(alert);
    }
    if (matching.length > 0) yield matching;
  }
}

/** Where the open occurrences are that matchers match: some candidates, by an equality of theirs, or all. */
async function openKeys(db: Db, tenantId: string, matchers: readonly LabelMatcher[]): Promise<OccurrenceKey[]> {
  const ofQuery = candidatesOfQuery(db, tenantId);
  const candidates = choice(matchers.map((matcher) => ofQuery({ kind: "label", matcher, path: "" })));
  const some = await someCandidates(db, tenantId, candidates, undefined);
  // All of them by occurrences_end.
  const from =
    some === undefined
      ? db`occurrences o`
      : db`(${some.keys}) as candidate cross join lateral (
          select tenant_id, event_id, number, end_ms from occurrences
          where tenant_id = ${tenantId} and event_id = candidate.event_id and number >= candidate.number
            and number <= candidate.number
          order by number limit 1
        ) as o`;
  const rows = await db<{ event_id: Buffer; number: number }[]>`
    select o.event_id, o.number from ${from}
    where o.tenant_id = ${tenantId} and o.end_ms is null
    limit ${alertsMax + 1}`;
  if (rows.length > alertsMax)
    throw exhausted(`more than ${alertsMax} alerts are open: search for them with POST /v1/events:search`);
  return rows.map((row): OccurrenceKey => ({ eventId: row.event_id, number: row.number }));
}

async function readAlerts(db: Db, tenantId: string, keys: readonly OccurrenceKey[]): Promise<OpenAlert[]> {
  const found = await findOccurrences(db, tenantId, keys);
  const entityIds = new Map(
    [...found.values()].map(({ event: { entityId } }) => [entityId.toString("latin1"), entityId]),
  );
  const dimensions = await readDimensions(db, tenantId, [...entityIds.values()]);
  return keys.flatMap((key) => {
    const { event, occurrence } = found.get(occurrenceText(key)) ?? {};
    if (event === undefined || occurrence === undefined || occurrence.endMs !== null) return [];
    const own = dimensions.get(event.entityId.toString("latin1")) ?? {};
    return [{ event, occurrence, labels: labelView({ kind: "occurrence", event, occurrence, dimensions: own }) }];
  });
}

/** Counts the open occurrences, by occurrences_end alone. */
export async function countOpen(db: Db, tenantId: string): Promise<bigint> {
  const [row] = await db<[{ count: bigint }]>`
    select count(*) as count from occurrences where tenant_id = ${tenantId} and end_ms is null`;
  return row.count;
}
