import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { type TimeRange, TimeRangeSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { type Event, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { PreviewTriggerResponseSchema, type TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { decided } from "../../clause/expression.ts";
import { foldedRow } from "../../clause/folded-row.ts";
import type { Db } from "../../db/connect.ts";
import { pageBytesMax } from "../../db/paging/page-contents.ts";
import { unsupported } from "../../errors.ts";
import { type Pace, paced } from "../../event-loop.ts";
import { CLOSED } from "../../events/lifecycle.ts";
import { seenOccurrences } from "../../events/matching.ts";
import { selection, toEvent } from "../../events/messages.ts";
import type { OccurrenceKey } from "../../events/occurrences.ts";
import { principalOf } from "../../rpc/context.ts";
import { checkEndMs, checkOpenStart } from "../../rpc/times.ts";
import {
  type MatchRow,
  matchRow,
  readCounts,
  readEntitiesOf,
  type TriggerFields,
  triggerFields,
} from "../rules/rows.ts";
import type { ReadyTrigger } from "../rules/sources/source.ts";
import { checkTriggerType, readyTrigger } from "../rules/sources.ts";
import { readSubjects } from "../subject/read-subjects.ts";
import { occurrenceRef } from "../subject/subject.ts";

const lookedAtMax = 50_000;
const portion = 500;
const shownMax = 100;
const dayMs = 86_400_000;

/** Shows what triggers would have matched. */
export function triggerPreviews(
  db: Db,
  nowMs: () => number,
): Pick<ServiceImpl<typeof TriggerService>, "previewTrigger"> {
  return {
    async previewTrigger({ type, timeRange }, context) {
      const { tenantId, tenantName } = principalOf(context);
      checkTriggerType(type, "type");
      const fields = triggerFields(tenantId, tenantName);
      const trigger = type && readyTrigger(type, fields).event;
      if (trigger === undefined) throw unsupported("triggers of the source event alone have a preview");
      const range = timeRange ?? create(TimeRangeSchema, { start: BigInt(Math.floor(nowMs()) - dayMs) });
      checkRange(range);
      const pace = paced(() => context.signal.throwIfAborted(), tenantId, { holdsNothing: true });
      const keys = await seenOccurrences(
        db,
        tenantId,
        range,
        { clause: trigger.clause, most: lookedAtMax + 1 },
        context.signal,
      );
      const partial = keys.length > lookedAtMax;
      let count = 0;
      const latest: MatchRow[] = [];
      for (let from = 0; from < Math.min(keys.length, lookedAtMax); from += portion) {
        const rows = await rowsOf(db, tenantId, keys.slice(from, Math.min(from + portion, lookedAtMax)), trigger);
        for (const row of rows) {
          await pace();
          if (!(await matches(trigger, row, fields.events, pace))) continue;
          count += 1;
          // Portions come from the latest to the oldest, to the five minutes.
          if (latest.length < shownMax + portion) latest.push(row);
        }
      }
      const events = await shown(db, tenantId, latest);
      return create(PreviewTriggerResponseSchema, { count: BigInt(count), events, partial });
    },
  };
}

/** @throws code 3 for times in seconds */
function checkRange({ start, end }: TimeRange): void {
  if (end !== undefined) checkEndMs(end, "timeRange.end");
  else if (start !== undefined) checkOpenStart(start, "timeRange.start");
}

type EventTrigger = NonNullable<ReadyTrigger["event"]>;

/** The occurrences as the trigger sees them. */
async function rowsOf(db: Db, tenantId: string, keys: readonly OccurrenceKey[], trigger: EventTrigger) {
  const states = await readSubjects(db, tenantId, keys.map(occurrenceRef));
  // In the order of the keys.
  const rows = [...states.values()].flatMap(({ occurrence: found }) =>
    found === undefined ? [] : [matchRow(found.event, found.occurrence)],
  );
  if (trigger.readsEntity) await readEntitiesOf(db, tenantId, rows);
  if (trigger.readsCount) await readCounts(db, tenantId, rows);
  return rows;
}

/** As it is now or, of one that is closed, as it was when it was open. */
async function matches(
  trigger: EventTrigger,
  row: MatchRow,
  values: TriggerFields["events"],
  pace: Pace,
): Promise<boolean> {
  const found = async (seen: MatchRow) => decided(await trigger.matches(foldedRow(seen, { values }), pace), "type");
  if (row.status !== CLOSED) return await found(row);
  if (await found({ ...row, status: Status.OPEN, end_ms: null })) return true;
  return trigger.namesStatus && (await found(row));
}

/** The latest of them as the API shows events, as many as fit into an answer. */
async function shown(db: Db, tenantId: string, rows: MatchRow[]): Promise<Event[]> {
  const latest = rows.sort((a, b) => Number(b.last_seen_ms - a.last_seen_ms)).slice(0, shownMax);
  await readEntitiesOf(db, tenantId, latest);
  await readCounts(db, tenantId, latest);
  let bytes = 0;
  const fitting = latest.filter((row, i) => {
    const { body, metadata, entity_dimensions, entity_metadata } = row;
    bytes += JSON.stringify([body, metadata, entity_dimensions, entity_metadata]).length;
    return i === 0 || bytes <= pageBytesMax;
  });
  return fitting.map((row) => toEvent(row, [row], row.count, tenantId, selection([])));
}
