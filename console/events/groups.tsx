import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Event } from "#gen/belfry/events/v1/event_pb.ts";
import {
  type EventGroup,
  EventQueryService,
  GroupEventsRequest_Sort as Sort,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { hereWith, linkTo } from "../data/address.ts";
import { answered, useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { useNews } from "../data/news.ts";
import { usePlace } from "../data/place.ts";
import { may } from "../data/session.ts";
import { useShortcuts } from "../data/shortcuts.ts";
import { useFocusKept } from "../ui/focus-kept.ts";
import { Problem } from "../ui/problem.tsx";
import { Sign } from "../ui/sign.tsx";
import { Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { calledOf } from "./entity-names.ts";
import {
  byEntity,
  chooseGrouping,
  clauseOfGroup,
  groupingHere,
  groupingName,
  groupNames,
  groupValue,
  silenceOfGroup,
} from "./grouping.ts";
import groupsLook from "./groups.module.css";
import { askLabelNames, labelNames } from "./label-names.ts";
import { MatchingActions } from "./matching-actions.tsx";
import { allOf, clauseText, ownClause, queryOf } from "./query.ts";
import { severityOf } from "./words.tsx";

const events = clientOf(EventQueryService);
/** The shortest time between two questions while events change. */
const askAgainMs = 2000;
const pageSize = 50;
const groupsMax = 500;
const namesMax = 3;

function queryOfGroup(grouping: string, value: string | undefined) {
  const query = queryOf();
  const own = clauseOfGroup(grouping, value);
  return { ...query, clause: query.clause === undefined ? own : allOf([query.clause, own]) };
}

/** Returns the address of the list of a group's occurrences. Reads signals. */
function listOfGroup(grouping: string, value: string | undefined): string {
  const own = clauseOfGroup(grouping, value);
  const where = clauseText(ownClause.value === undefined ? own : allOf([ownClause.value, own]));
  return hereWith({ group: undefined, where });
}

/** Chooses what the list is grouped by: the name, the entity, or a label of what is open. */
export function GroupChoice() {
  const grouping = groupingHere() ?? "";
  const known = ["", "alertname", byEntity];
  const others = new Set([grouping, ...labelNames.value]);
  const look = () => void askLabelNames();
  return (
    <select
      aria-label="Group by"
      value={grouping}
      onFocus={look}
      onPointerEnter={look}
      onChange={({ currentTarget }) => chooseGrouping(currentTarget.value || undefined)}
    >
      <option value="">No groups</option>
      <option value="alertname">Group: name</option>
      <option value={byEntity}>Group: entity</option>
      {[...others]
        .filter((name) => !known.includes(name))
        .map((name) => (
          <option key={name} value={name}>
            Group: label {name}
          </option>
        ))}
    </select>
  );
}

interface GroupsProps {
  readonly grouping: string;
  /** Shown where there is no group. */
  readonly nothing: ComponentChildren;
}

/** Shows the results of the address's query as groups, the worst first, and keeps them current. */
export function Groups({ grouping, nothing }: GroupsProps) {
  const by = groupingName(grouping);
  const news = useNews(askAgainMs);
  const size = usePlace("groups", pageSize);
  const open = usePlace<ReadonlySet<string>>("open groups", new Set());
  const answer = useAnswer(
    async (signal) => {
      news.value;
      const of = grouping === byEntity ? { byEntity: true } : { labels: [grouping] };
      const asked = { query: queryOf(), ...of, sort: Sort.SEVERITY, pageSize: size.value };
      return await events.groupEvents(asked, { signal });
    },
    grouping,
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
  const keys = groups.map((group) => keyOf(grouping, group));
  const names = groupNames(grouping, groups);
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
      {failure && !failure.away && (
        <button type="button" onClick={() => chooseGrouping(undefined)}>
          Show as a list
        </button>
      )}
      <p class={groupsLook.total} role="status">
        {value && `${total.toLocaleString("en")} ${total === 1 ? "group" : "groups"}`}
      </p>
      {value && total === 0 && nothing}
      <ul aria-label={`Groups by ${by}`}>
        {groups.map((group, place) => {
          const key = keyOf(grouping, group);
          return (
            <Group
              key={key}
              grouping={grouping}
              group={group}
              name={names[place] ?? ""}
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

const keyOf = (grouping: string, group: EventGroup) => JSON.stringify(groupValue(grouping, group) ?? null);

interface GroupProps {
  readonly grouping: string;
  readonly group: EventGroup;
  /** Its name among the groups in sight. */
  readonly name: string;
  readonly open: boolean;
  /** True if the shortcuts a, c and n act on this group. */
  readonly current: boolean;
  /** Makes it the current one. */
  makeCurrent(): void;
  toggle(): void;
  changed(): void;
}

function Group({ grouping, group, name, open, current, makeCurrent, toggle, changed }: GroupProps) {
  const value = groupValue(grouping, group);
  const count = Number(group.count);
  const acknowledged = Number(group.acknowledgedCount);
  const silence = may(SilenceService.method.createSilence) ? silenceOfGroup(grouping, value) : undefined;
  const { word, tone } = severityOf(group.severity);
  const byName = grouping === "alertname";
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
          <strong title={group.entityName || name}>{name}</strong>
          <span class={groupsLook.count}>{count.toLocaleString("en")}</span>
        </button>
        <span class={groupsLook.where}>{whereText(grouping, group)}</span>
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
            query={() => queryOfGroup(grouping, value)}
            changed={changed}
            letters={current}
          />
          {silence && (
            <a class={ui.button} aria-label={`Silence ${name}…`} href={silence}>
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
                <a href={linkTo(["occurrences", occurrence.id])}>{byName ? calledOf(event) : event.name}</a>
                <span class={groupsLook.summary}>
                  {grouping !== byEntity && !byName && `${calledOf(event)} · `}
                  {occurrence.summary}
                </span>
                {occurrence.acknowledged && <span class={ui.tag}>acked</span>}
                <Time at={occurrence.startTime} age />
              </li>
            )),
          )}
          <li>
            <a href={listOfGroup(grouping, value)}>
              {count > group.members.length ? `Show all ${count.toLocaleString("en")}` : "Show as a list"}
            </a>
            {grouping === byEntity && <a href={linkTo(["entities", value ?? ""])}>Open the entity</a>}
          </li>
        </ul>
      )}
    </li>
  );
}

/** Lists the entities of the known members, or in groups by entity their events. */
function whereText(grouping: string, { members, count }: EventGroup): string {
  const nameOf = (event: Event) => (grouping === byEntity ? (event.name ?? "") : calledOf(event));
  const names = [...new Set(members.map(nameOf))];
  const more = names.length > namesMax || Number(count) > members.length;
  return names.slice(0, namesMax).join(", ") + (more ? " …" : "");
}
