import { create } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { address, setParameters } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf, failureOfOneRead, isAway } from "../data/calls.ts";
import { useSettled } from "../data/settled.ts";
import { calledOf } from "../events/entity-names.ts";
import ui from "../ui/ui.module.css";
import type { Names } from "./subject-names.ts";

const events = clientOf(EventQueryService);
const entities = clientOf(EntityService);
const rules = clientOf(RuleService);
const destinations = clientOf(DestinationService);
const triggers = clientOf(TriggerService);
const pageSize = 20;

interface Offered {
  readonly text: string;
  /** The parameter of the address that it sets, and the value. */
  readonly parameter: string;
  readonly value: string;
}

type Find = (words: string, signal: AbortSignal) => Promise<Offered[]>;

const named =
  (parameter: string, find: (name: string, signal: AbortSignal) => Promise<readonly { name: string }[]>): Find =>
  async (words, signal) =>
    (await find(words, signal)).map(({ name }) => ({ text: name, parameter, value: name }));

/** Filters of deliveries, each with its search by words. */
const kinds: readonly { label: string; find: Find }[] = [
  { label: "About", find: findSubjects },
  {
    label: "Rule",
    find: named("rule", async (name, signal) => (await rules.listRules({ name, pageSize }, { signal })).rules),
  },
  {
    label: "Destination",
    find: named(
      "destination",
      async (name, signal) => (await destinations.listDestinations({ name, pageSize }, { signal })).destinations,
    ),
  },
  {
    label: "Trigger",
    find: named(
      "trigger",
      async (name, signal) => (await triggers.listTriggers({ name, pageSize }, { signal })).triggers,
    ),
  },
];

/** Finds events and entities by words of their names. */
async function findSubjects(words: string, signal: AbortSignal): Promise<Offered[]> {
  if (words.trim() === "") return [];
  // What is offered has the entity behind the name.
  const [start = ""] = words.split(" on ");
  const value = { kind: { case: "stringValue" as const, value: start } };
  const clause = create(ClauseSchema, { filter: { field: "name", operation: Operation.OP_TEXT, value } });
  const pageInput = { limit: pageSize };
  const fields = [{ field: "name" }, { field: "entityName" }];
  const [ofEvents, ofEntities] = await Promise.all([
    events.searchEvents({ query: { clause, fields, pageInput } }, { signal }),
    entities.searchEntities({ searchInput: { query: { clause }, pageInput } }, { signal }),
  ]);
  return [
    ...(ofEntities.entities?.entities ?? []).map(({ id, displayName }) => ({
      text: displayName,
      parameter: "entityId",
      value: id,
    })),
    ...ofEvents.results.map((event) => ({
      text: `${event.name} on ${calledOf(event)}`,
      parameter: "eventId",
      value: event.id,
    })),
  ];
}

/** The filters by names, each of which offers what it finds; what is chosen is a button that gives it up. */
export function NameFilters({ names }: { names: Names }) {
  const chosen = [
    ["summary", "one summary", ""],
    ["groupKey", "one group", ""],
    ["eventId", "one event", names.get(eventOf(address.value.parameters.get("eventId") ?? "")) ?? ""],
    ["entityId", "one entity", names.get(address.value.parameters.get("entityId") ?? "") ?? ""],
  ] as const;
  return (
    <>
      {chosen
        .filter(([parameter]) => address.value.parameters.has(parameter))
        .map(([parameter, some, name]) => (
          <button key={parameter} type="button" onClick={() => setParameters({ [parameter]: undefined })}>
            Of {name || some} ×
          </button>
        ))}
      {kinds.map(({ label, find }) => (
        <NameFilter key={label} label={label} find={find} />
      ))}
    </>
  );
}

/** The event of an occurrence's id, or of an event's. */
export const eventOf = (id: string) => id.replace(/:\d+$/, "");

function NameFilter({ label, find }: { label: string; find: Find }) {
  const id = useId();
  const parameter = label.toLowerCase();
  const typed = useSignal<string | undefined>(undefined);
  const words = useSettled(typed.value ?? "", 200);
  const used = useSignal(false);
  const answer = useAnswer(async (signal) => (used.value ? await find(words, signal) : []), words);
  const offered = answer.value.value ?? [];
  /** Matches for the entered words, if several. */
  const candidates = useSignal<readonly Offered[]>([]);
  /** Reason why the entered words became no filter. */
  const said = useSignal("");
  const searching = useRef(new AbortController());
  const forget = () => {
    searching.current.abort();
    candidates.value = [];
    said.value = "";
  };
  // A late answer would set the filter on another screen.
  useEffect(() => () => searching.current.abort(), []);
  const choose = ({ parameter: of, value }: Offered) => {
    typed.value = undefined;
    forget();
    setParameters({ [of]: value });
  };
  const search = async (text: string) => {
    forget();
    searching.current = new AbortController();
    const { signal } = searching.current;
    let failure: unknown;
    const found = await find(text, signal).catch((error) => {
      failure = error;
      return [];
    });
    // Another name was entered or chosen meanwhile.
    if (signal.aborted) return;
    // A key that may not read names can still filter by a whole one.
    if (failure !== undefined && (isAway(failure) || label === "About")) {
      said.value = failureOfOneRead(failure).message;
      return;
    }
    const whole = found.filter((each) => each.text === text);
    const fits = whole.length > 0 ? whole : found;
    const [first] = fits;
    if (first !== undefined && fits.length === 1) return choose(first);
    candidates.value = fits;
    if (fits.length > 0) return;
    if (label === "About") {
      said.value = "Nothing has this name.";
      return;
    }
    typed.value = undefined;
    // A name that nothing has may be of something that is deleted; deliveries remember it.
    setParameters({ [parameter]: text });
  };
  return (
    <>
      <input
        class={ui.short}
        type="search"
        aria-label={label}
        placeholder={label}
        list={id}
        value={typed.value ?? address.value.parameters.get(parameter) ?? ""}
        onFocus={() => {
          used.value = true;
        }}
        onInput={({ currentTarget }) => {
          typed.value = currentTarget.value;
          forget();
          if (currentTarget.value === "") setParameters({ [parameter]: undefined });
          const found = offered.find(({ text }) => text === currentTarget.value);
          if (found) choose(found);
        }}
        onChange={({ currentTarget }) => {
          const text = currentTarget.value.trim();
          if (typed.value !== undefined && text !== "") void search(text);
          else typed.value = undefined;
        }}
      />
      <datalist id={id}>
        {offered.map(({ text, value }) => (
          <option key={value} value={text} />
        ))}
      </datalist>
      {said.value && (
        <span class={ui.hint} role="status">
          {said.value}
        </span>
      )}
      {candidates.value.length > 0 && (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset would be drawn as a part of a form
        <span
          class={ui.buttons}
          role="group"
          aria-label={label === "About" ? "Events and entities with this name" : `${label}s with this name`}
        >
          {candidates.value.map((each) => (
            <button key={each.value} type="button" onClick={() => choose(each)}>
              {each.text}
            </button>
          ))}
        </span>
      )}
    </>
  );
}
