import type { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { Status as Statuses } from "#gen/belfry/events/v1/event_pb.ts";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { clientOf, failureOf } from "../data/calls.ts";
import { countText } from "../ui/quantity.ts";
import type { QueryInit } from "./query.ts";

const management = clientOf(EventManagementService);
const events = clientOf(EventQueryService);
const itemsMax = 1000;
/** Of how many changed occurrences the way back is kept. */
const undoneMax = 50_000;
/** Most occurrences that get a note at once. */
const annotatedMax = 50_000;

/** An action on all results of a query. */
export type MatchingAction = "acknowledge" | "unacknowledge" | "close";

interface Changed {
  readonly eventId: string;
  readonly occurrenceId: string;
  /** The status that it had; absent where only the acknowledgement was changed. */
  readonly status?: Status;
}

export interface Done {
  readonly count: number;
  /** Reason for which the rest was not changed; empty if all was. */
  readonly error: string;
  /** Makes those that were changed what they were. Absent where they are too many. */
  readonly undo?: () => Promise<void>;
}

/** Acknowledges all that a query finds, withdraws that, or closes them, a thousand in a call, and reports how many were changed so far. */
export async function doMatching(
  action: MatchingAction,
  query: QueryInit,
  report: (count: number) => void,
): Promise<Done> {
  const changed: Changed[] = [];
  let error = "";
  // Of what is closed the status before is known by asking for one status after the other.
  const before = action === "close" ? statusesOf(query) : [undefined];
  try {
    for (const status of before) {
      const asked = { ...query, ...(status !== undefined && { statuses: [status] }) };
      const setting =
        status === undefined
          ? { acknowledged: action === "acknowledge" }
          : { statusWrapper: { status: Statuses.CLOSED } };
      for (let left = true; left; ) {
        const { statusResponses, remainingCount } = await management.setMatchingStatus({ query: asked, ...setting });
        const succeeded = statusResponses.filter(({ success }) => success);
        error ||= statusResponses.find(({ success }) => !success)?.error ?? "";
        for (const { eventId, occurrenceId } of succeeded)
          changed.push({ eventId, occurrenceId, ...(status !== undefined && { status }) });
        report(changed.length);
        left = remainingCount > 0n && succeeded.length > 0;
      }
    }
  } catch (failed) {
    error = failureOf(failed).message;
  }
  const done = { count: changed.length, error };
  return changed.length > 0 && changed.length <= undoneMax ? { ...done, undo: () => undo(changed, action) } : done;
}

function statusesOf({ statuses = [] }: QueryInit): readonly Status[] {
  const all = [Statuses.OPEN, Statuses.DEFAULT, Statuses.SUPPRESSED];
  return statuses.length === 0 ? all : all.filter((status) => statuses.includes(status));
}

async function undo(changed: readonly Changed[], action: MatchingAction): Promise<void> {
  for (let from = 0; from < changed.length; from += itemsMax) {
    const statuses = changed.slice(from, from + itemsMax).map(({ status, ...ids }) => ({
      ...ids,
      ...(status === undefined ? { acknowledged: action === "unacknowledge" } : { statusWrapper: { status } }),
    }));
    const { statusResponses } = await management.setEventStatus({ statuses });
    const failed = statusResponses.filter(({ success }) => !success);
    if (failed[0] !== undefined)
      throw new Error(`${countText(failed.length)} of ${countText(changed.length)} stay: ${failed[0].error}`);
  }
}

/** Writes a note to all that a query finds, which is read first: what comes meanwhile gets none. Reports how many have it so far. */
export async function annotateMatching(
  annotation: string,
  query: QueryInit,
  report: (count: number) => void,
): Promise<Done> {
  let count = 0;
  let error = "";
  try {
    const found: { eventId: string; occurrenceId: string; annotation: string }[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const asked = { ...query, fields: [{ field: "id" }], pageInput: { limit: itemsMax, cursor } };
      const { results, pageInfo } = await events.searchEvents({ query: asked });
      for (const { id: eventId, occurrences } of results)
        for (const { id: occurrenceId } of occurrences) found.push({ eventId, occurrenceId, annotation });
      cursor = pageInfo?.hasNext ? pageInfo.endCursor : undefined;
      if (found.length > annotatedMax)
        throw new Error(`A note is written to at most ${countText(annotatedMax)} at once.`);
    }
    for (let from = 0; from < found.length; from += itemsMax) {
      const annotations = found.slice(from, from + itemsMax);
      const { annotationResponses } = await management.annotateEvents({ annotations });
      count += annotationResponses.filter(({ success }) => success).length;
      error ||= annotationResponses.find(({ success }) => !success)?.error ?? "";
      report(count);
    }
  } catch (failed) {
    error = failureOf(failed).message;
  }
  return { count, error };
}
