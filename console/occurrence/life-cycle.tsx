import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { ClosedBy, type Event, type Occurrence, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { may } from "../data/session.ts";
import { countText } from "../ui/quantity.ts";
import { durationText, Time, timeText } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { TextWithLinks } from "../ui/web-address.tsx";
import occurrenceLook from "./occurrence.module.css";

const events = clientOf(EventQueryService);
const audit = clientOf(AuditLogService);

/** What happened to it, in order: first and last report, changes by people, notes, its end. */
export function LifeCycle({ event, occurrence }: { event: Event; occurrence: Occurrence }) {
  const { of, changes } = useChanges(event, occurrence);
  const { startTime = 0n, lastSeen = 0n, endTime, instanceCount = 1n, annotations } = occurrence;
  const closing = closingOf(changes, of);
  const closer = closers[occurrence.closedBy ?? ClosedBy.UNSPECIFIED];
  const others = changes.filter((change) => change !== closing);
  const steps: { at: bigint; what: string; by?: string | undefined; text?: string }[] = [
    { at: startTime, what: "First report" },
    ...(instanceCount > 1n ? [{ at: lastSeen, what: `Last of ${instanceCount.toLocaleString("en")} reports` }] : []),
    ...others.map(({ at, by }) => ({ at, what: changeText(others.length, of), by })),
    ...annotations.map(({ createTime, createdBy, annotation }) => ({
      at: createTime,
      what: "Note",
      by: createdBy,
      text: annotation,
    })),
    ...(endTime === undefined
      ? []
      : [
          { at: endTime, what: `Closed after ${durationText(Number(endTime - startTime))}`, by: closing?.by ?? closer },
        ]),
  ];
  steps.sort((a, b) => Number(a.at - b.at));
  return (
    <section class={ui.card} aria-labelledby="life">
      <h2 id="life">Life cycle</h2>
      <Repeats occurrence={occurrence} />
      <ol class={ui.steps}>
        {steps.map((step, at) => (
          <li key={`${at} ${step.at}`}>
            <p>
              <strong>{step.what}</strong>
              {step.by && <> by {step.by}</>}
            </p>
            <p class={ui.hint}>
              <Time at={step.at} />
            </p>
            {step.text !== undefined && (
              <p class={occurrenceLook.note}>
                <TextWithLinks text={step.text} />
              </p>
            )}
          </li>
        ))}
        {endTime === undefined && (
          <li>
            <p class={ui.quiet}>Not closed.</p>
          </li>
        )}
      </ol>
    </section>
  );
}

/** When a person or program set its status, and which. */
interface StatusChange {
  readonly at: bigint;
  readonly by: string;
}

/** How far the audit log's time of a closing may be from the end of the occurrence. */
const sameMomentMs = 1000n;

/** Who closed it, where the audit log does not say more. */
const closers: Partial<Record<ClosedBy, string>> = {
  [ClosedBy.ALERT]: "the end of its alert",
  [ClosedBy.EVENT]: "a report",
  [ClosedBy.PERSON]: "hand",
  [ClosedBy.EXPIRY]: "expiry",
  [ClosedBy.AGEING]: "age",
};

/** The change that closed it; undefined: none did. */
function closingOf(changes: readonly StatusChange[], { closedBy, endTime }: Occurrence): StatusChange | undefined {
  if (closedBy !== ClosedBy.PERSON || endTime === undefined) return undefined;
  const apart = ({ at }: StatusChange) => (at > endTime ? at - endTime : endTime - at);
  return changes.find((change) => apart(change) <= sameMomentMs);
}

/** The audit log says that something was set, and not what. A single change is told by what the occurrence was like. */
function changeText(count: number, { acknowledged, status }: Occurrence): string {
  if (count === 1 && acknowledged) return "Acknowledged";
  if (count === 1 && status === Status.SUPPRESSED) return "Suppressed";
  return "Acknowledgement or status set";
}

const settingRpcs = [EventManagementService.method.setEventStatus, EventManagementService.method.setMatchingStatus];
const aroundMs = 60_000;

interface Changes {
  /** The occurrence as it was when they were read: by it a change is told. */
  readonly of: Occurrence;
  readonly changes: readonly StatusChange[];
}

/**
 * Reads from the audit log who set its status; only keys that may read the log see that. An occurrence that has changed keeps the
 * former answer until its own is there.
 */
function useChanges(event: Event, occurrence: Occurrence): Changes {
  const { startTime = 0n, endTime } = occurrence;
  const answer = useAnswer(
    async (signal): Promise<Changes> => {
      if (!may(AuditLogService.method.listAuditEntries)) return { of: occurrence, changes: [] };
      // Later changes are of the event's next occurrences.
      const within = {
        startTime: timestampFromMs(Math.max(0, Number(startTime) - aroundMs)),
        ...(endTime !== undefined && { endTime: timestampFromMs(Number(endTime) + aroundMs) }),
        pageSize: 200,
      };
      const pages = await Promise.all(
        settingRpcs.map(({ name: rpc }) => audit.listAuditEntries({ ...within, rpc }, { signal })),
      );
      const changes = pages
        .flatMap(({ entries }) => entries)
        .filter(({ resource, outcome }) => outcome === "OK" && resource.includes(event.id))
        .map(({ client, time }) => ({ by: client?.name ?? "", at: BigInt(time ? timestampMs(time) : 0) }));
      return { of: occurrence, changes };
    },
    occurrence,
    "acknowledgements",
  );
  return answer.value.value ?? { of: occurrence, changes: [] };
}

const bars = 60;

/** When it was reported, as bars over the time from the first report to the last. */
function Repeats({ occurrence }: { occurrence: Occurrence }) {
  const { id, startTime = 0n, lastSeen = 0n, instanceCount = 1n } = occurrence;
  const answer = useAnswer(
    async (signal) => {
      if (instanceCount < 2n || lastSeen <= startTime) return [];
      const clause = { withIds: { ids: [id] } };
      const timeRange = { start: startTime, end: lastSeen + 1n };
      const downsample = BigInt(Math.max(1000, Math.ceil(Number(lastSeen - startTime) / bars)));
      const { results } = await events.countEventFrequency(
        { query: { clause, timeRange }, downsample, countInstances: true },
        { signal },
      );
      return results.total?.values[0]?.counts.map(Number) ?? [];
    },
    lastSeen,
    "frequency",
  );
  const counts = answer.value.value ?? [];
  if (counts.length < 2) return null;
  const most = Math.max(...counts);
  return (
    <figure class={occurrenceLook.bars}>
      <svg
        viewBox={`0 0 ${counts.length * 10} 40`}
        preserveAspectRatio="none"
        role="img"
        aria-label="Reports over time"
      >
        {counts.map((count, at) => (
          <rect key={String(at)} x={at * 10 + 1} width={8} y={40 - (count / most) * 38} height={(count / most) * 38} />
        ))}
      </svg>
      <figcaption class={ui.hint}>
        {timeText(Number(startTime))} to {timeText(Number(lastSeen))}, at most {countText(most)} in a bar
      </figcaption>
    </figure>
  );
}
