import { create } from "@bufbuild/protobuf";
import { useLayoutEffect, useRef } from "preact/hooks";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import {
  type EventGroup,
  EventQueryService,
  GroupEventsRequest_Sort as Sort,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { hereWith, linkTo, parameterOf, setParameters } from "../data/address.ts";
import { answered, useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { useNews } from "../data/news.ts";
import { usePlace } from "../data/place.ts";
import { may } from "../data/session.ts";
import { useShortcuts } from "../data/shortcuts.ts";
import { equalityText } from "../form/matcher-text.ts";
import { silenceLink } from "../silences/link.ts";
import { useFocusKept } from "../ui/focus-kept.ts";
import { Problem } from "../ui/problem.tsx";
import { Sign } from "../ui/sign.tsx";
import { Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { matchersOf } from "./clause-matchers.ts";
import { plainName } from "./entity-names.ts";
import groupsLook from "./groups.module.css";
import { askLabelNames, labelNames } from "./label-names.ts";
import { MatchingActions } from "./matching-actions.tsx";
import { allOf, clausesHere, clauseText, ownClause, queryOf } from "./query.ts";
import { labelClause } from "./terms.ts";
import { severityOf } from "./words.tsx";

const events = clientOf(EventQueryService);
/** The shortest time between two questions while events change. */
const askAgainMs = 2000;
const pageSize = 50;
const groupsMax = 500;
const namesMax = 3;

/** The label that the list is grouped by; undefined for none. */
export const groupedBy = () => parameterOf("group") || undefined;

/** The clause of a group: its label has this value, or is missing. */
function clauseOf(label: string, value: string | undefined) {
  if (value !== undefined) return labelClause(label, value);
  const exists = { field: `labels.${label}`, operation: Operation.OP_EXISTS };
  return create(ClauseSchema, { noneOf: { clause: create(ClauseSchema, { filter: exists }) } });
}

function queryOfGroup(label: string, value: string | undefined) {
  const query = queryOf();
  const own = clauseOf(label, value);
  return { ...query, clause: query.clause === undefined ? own : allOf([query.clause, own]) };
}

/** The matchers of a group: its label's, and what the list is narrowed by as far as that is labels. Reads signals. */
function matchersOfGroup(label: string, value = ""): string {
  const all = [equalityText(label, value), ...clausesHere().flatMap(matchersOf)];
  return [...new Set(all)].join("\n");
}

/** Returns the address of the list of a group's occurrences. Reads signals. */
function listOfGroup(label: string, value: string | undefined): string {
  const own = clauseOf(label, value);
  const where = clauseText(ownClause.value === undefined ? own : allOf([ownClause.value, own]));
  return hereWith({ group: undefined, where });
}

/** Chooses what the list is grouped by: the name, or a label of what is open. */
export function GroupChoice() {
  const by = groupedBy();
  const others = labelNames.value.filter((name) => name !== "alertname");
  const names = [...new Set(["alertname", ...(by === undefined ? [] : [by]), ...others])];
  const look = () => void askLabelNames();
  return (
    <select
      aria-label="Group by"
      value={by ?? ""}
      onFocus={look}
      onPointerEnter={look}
      onChange={({ currentTarget }) => setParameters({ group: currentTarget.value })}
    >
      <option value="">No groups</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name === "alertname" ? "Group: name" : `Group: ${name}`}
        </option>
      ))}
    </select>
  );
}

/** Shows the results of the address's query as groups, the worst first, and keeps them current. */
export function Groups({ label }: { label: string }) {
  const news = useNews(askAgainMs);
  const size = usePlace("groups", pageSize);
  const open = usePlace<ReadonlySet<string>>("open groups", new Set());
  const answer = useAnswer(
    async (signal) => {
      news.value;
      const asked = { query: queryOf(), labels: [label], sort: Sort.SEVERITY, pageSize: size.value };
      return await events.groupEvents(asked, { signal });
    },
    label,
    "groups",
  );
  const current = usePlace("current group", "");
  const scroll = usePlace("groups, scroll", 0);
  const leftLink = usePlace("groups, focus", "");
  const scroller = useRef<HTMLDivElement>(null);
  const restored = useRef(false);
  const lastAt = useRef(0);
  const { failure, again } = answer.value;
  const value = answered(answer.value);
  const groups = value?.groups ?? [];
  const total = Number(value?.totalCount ?? 0n);
  const keys = groups.map((group) => keyOf(label, group));
  const at = keys.indexOf(current.value);
  if (at !== -1) lastAt.current = at;
  const focus = (index: number) => {
    const bounded = Math.max(0, Math.min(keys.length - 1, index));
    const toggles = scroller.current?.querySelectorAll<HTMLElement>("[data-toggle]");
    toggles?.[bounded]?.focus();
  };
  const step = (by: number) => focus(at === -1 ? 0 : at + by);
  useShortcuts({ j: () => step(1), k: () => step(-1) });
  useFocusKept(scroller, () => {
    const toggles = [...(scroller.current?.querySelectorAll<HTMLElement>("[data-toggle]") ?? [])];
    return toggles[Math.min(lastAt.current, toggles.length - 1)] ?? null;
  });
  // Restores scroll and focus once the groups are loaded.
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null || restored.current || groups.length === 0) return;
    restored.current = true;
    element.scrollTop = scroll.peek();
    if (leftLink.peek() === "") return;
    const link = [...element.querySelectorAll("a")].find((each) => each.getAttribute("href") === leftLink.peek());
    leftLink.value = "";
    if (link) link.focus({ preventScroll: true });
    else focus(keys.indexOf(current.peek()));
  }, [groups.length]);
  return (
    <div
      class={groupsLook.groups}
      ref={scroller}
      onScroll={({ currentTarget }) => {
        if (restored.current) scroll.value = currentTarget.scrollTop;
      }}
      onClickCapture={({ target, ctrlKey, metaKey, shiftKey }) => {
        const link = (target as Element).closest("a");
        if (link !== null && !ctrlKey && !metaKey && !shiftKey) leftLink.value = link.getAttribute("href") ?? "";
      }}
    >
      <Problem failure={failure} again={again} />
      <p class={groupsLook.total} role="status">
        {value && `${total.toLocaleString("en")} ${total === 1 ? "group" : "groups"}`}
      </p>
      {value && total === 0 && <p class={ui.pad}>No occurrence matches, so there is no group.</p>}
      <ul aria-label={`Groups by ${label}`}>
        {groups.map((group) => {
          const key = keyOf(label, group);
          return (
            <Group
              key={key}
              label={label}
              group={group}
              open={open.value.has(key)}
              current={key === current.value}
              makeCurrent={() => {
                current.value = key;
              }}
              toggle={() => {
                const next = new Set(open.value);
                if (!next.delete(key)) next.add(key);
                open.value = next;
              }}
              changed={again}
            />
          );
        })}
      </ul>
      {groups.length < total &&
        (size.value < groupsMax ? (
          <button
            type="button"
            onClick={() => {
              size.value = Math.min(groupsMax, size.value + pageSize);
            }}
          >
            More groups
          </button>
        ) : (
          <p class={ui.quiet}>These are the first {groupsMax}. Conditions leave fewer.</p>
        ))}
    </div>
  );
}

const keyOf = (label: string, { labels }: EventGroup) => JSON.stringify(labels[label] ?? null);

interface GroupProps {
  readonly label: string;
  readonly group: EventGroup;
  readonly open: boolean;
  /** True if the shortcuts a, c and n act on this group. */
  readonly current: boolean;
  /** Makes it the current one. */
  makeCurrent(): void;
  toggle(): void;
  changed(): void;
}

function Group({ label, group, open, current, makeCurrent, toggle, changed }: GroupProps) {
  const value = group.labels[label];
  const count = Number(group.count);
  const acknowledged = Number(group.acknowledgedCount);
  const name = value ?? `without ${label}`;
  const { word, tone } = severityOf(group.severity);
  return (
    <li
      class={acknowledged === count ? groupsLook.dim : undefined}
      aria-current={current || undefined}
      onFocusIn={makeCurrent}
    >
      <div class={groupsLook.head}>
        <button type="button" data-toggle class={groupsLook.toggle} aria-expanded={open} onClick={toggle}>
          <span aria-hidden="true">{open ? "▾" : "▸"}</span> <Sign tone={tone} />
          <span class={ui.unseen}>{word}</span>
          <strong title={name}>{name}</strong>
          <span class={groupsLook.count}>{count.toLocaleString("en")}</span>
        </button>
        <span class={groupsLook.where}>{whereText(group)}</span>
        <span class={groupsLook.acknowledged}>
          {acknowledged.toLocaleString("en")} of {count.toLocaleString("en")} acked
        </span>
        <span class={groupsLook.age}>
          <Time at={group.newestTime} age />
          {group.newestTime !== group.oldestTime && (
            <>
              {" – "}
              <Time at={group.oldestTime} age />
            </>
          )}
        </span>
        <span class={groupsLook.actions}>
          <MatchingActions
            count={count}
            unacknowledged={count - acknowledged}
            of={`of ${name}`}
            query={() => queryOfGroup(label, value)}
            changed={changed}
            letters={current}
          />
          {may(SilenceService.method.createSilence) && (
            <a
              class={ui.button}
              aria-label={`Silence ${name}…`}
              href={silenceLink({ matchers: matchersOfGroup(label, value) })}
            >
              Silence…
            </a>
          )}
        </span>
      </div>
      {open && (
        <ul class={groupsLook.members} aria-label={`Members of ${name}`}>
          {group.members.map((event) =>
            event.occurrences.map((occurrence) => (
              <li key={occurrence.id}>
                <Sign tone={severityOf(occurrence.severity).tone} />
                <span class={ui.unseen}>{severityOf(occurrence.severity).word}</span>
                <a href={linkTo(["occurrences", occurrence.id])}>
                  {label === "alertname" ? plainName(event.entityName ?? "") : event.name}
                </a>
                <span class={groupsLook.summary}>
                  {label !== "alertname" && `${plainName(event.entityName ?? "")} · `}
                  {occurrence.summary}
                </span>
                {occurrence.acknowledged && <span class={ui.tag}>acked</span>}
                <Time at={occurrence.startTime} age />
              </li>
            )),
          )}
          <li>
            <a href={listOfGroup(label, value)}>
              {count > group.members.length ? `Show all ${count.toLocaleString("en")}` : "Show as a list"}
            </a>
          </li>
        </ul>
      )}
    </li>
  );
}

/** The entities of the members that are known. */
function whereText({ members, count }: EventGroup): string {
  const names = [...new Set(members.map(({ entityName = "" }) => plainName(entityName)))];
  const more = names.length > namesMax || Number(count) > members.length;
  return names.slice(0, namesMax).join(", ") + (more ? " …" : "");
}
