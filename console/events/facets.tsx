import type { Value } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { listText, setParameters } from "../data/address.ts";
import { clientOf } from "../data/calls.ts";
import { Sign } from "../ui/sign.tsx";
import ui from "../ui/ui.module.css";
import eventsLook from "./events.module.css";
import { chosen, type Filter, filters, queryOf } from "./query.ts";
import { severities, statuses } from "./words.tsx";

const events = clientOf(EventQueryService);

/** How many occurrences have each value of a field, the most frequent first. */
export type Counts = Readonly<Record<Filter, readonly { value: string; count: number }[]>>;

/**
 * Counts the values of all filters. A filter that has a choice is counted without it: that is how many would be listed if its other values
 * were chosen. Reads signals.
 */
export async function countFilters(signal: AbortSignal): Promise<Counts> {
  const narrowed = filters.filter((filter) => chosen(filter).length > 0);
  const free = filters.filter((filter) => !narrowed.includes(filter));
  const asked = [
    { query: queryOf(), of: free },
    ...narrowed.map((filter) => ({ query: queryOf(filter), of: [filter] })),
  ];
  const answers = await Promise.all(
    asked
      .filter(({ of }) => of.length > 0)
      .map(({ query, of }) => events.countEvents({ query, fields: of.map((field) => ({ field })) }, { signal })),
  );
  const results = Object.assign({}, ...answers.map((answer) => answer.results)) as (typeof answers)[number]["results"];
  const of = (filter: Filter) =>
    (results[filter]?.values ?? [])
      .map(({ value, count }) => ({ value: textOf(value), count: Number(count) }))
      .sort((a, b) => b.count - a.count);
  return Object.fromEntries(filters.map((filter) => [filter, of(filter)])) as unknown as Counts;
}

const textOf = (value: Value | undefined) => (value?.kind.value === undefined ? "" : String(value.kind.value));

function choose(filter: Filter, values: readonly string[]): void {
  // Without a choice the open ones are listed: to list all is a choice of its own.
  const none = filter === "status" ? "any" : undefined;
  setParameters({ [filter]: values.length === 0 ? none : listText(values) });
}

/** The filters, each with its values and how many have them. */
export function Facets({ counts }: { counts: Counts | undefined }) {
  return (
    <div class={eventsLook.facets}>
      <Facet
        filter="severity"
        label="Severity"
        counts={counts}
        values={severities.map(({ value, word, tone }) => ({ value: String(value), word, tone }))}
      />
      <Facet
        filter="status"
        label="Status"
        counts={counts}
        values={statuses.map(({ value, word }) => ({ value: String(value), word }))}
      />
      <Facet
        filter="acknowledged"
        label="Acknowledged"
        counts={counts}
        values={[
          { value: "false", word: "No" },
          { value: "true", word: "Yes" },
        ]}
      />
      <Facet filter="entityName" label="Entity" counts={counts} />
      <Facet filter="name" label="Name" counts={counts} />
    </div>
  );
}

/** How many there are of each severity; a press on one lists it alone. */
export function Totals({ counts }: { counts: Counts | undefined }) {
  const selected = chosen("severity");
  const countOf = new Map(counts?.severity.map(({ value, count }) => [value, count]));
  const told = severities.slice(0, 4).filter(({ value }) => (countOf.get(String(value)) ?? 0) > 0);
  if (told.length === 0) return null;
  return (
    <fieldset class={eventsLook.totals} aria-label="Totals">
      {told.map(({ value, word, tone }) => {
        const only = selected.length === 1 && selected[0] === String(value);
        return (
          <button
            key={value}
            type="button"
            data-tone={tone}
            aria-pressed={only}
            onClick={() => choose("severity", only ? [] : [String(value)])}
          >
            <strong>{countOf.get(String(value))?.toLocaleString("en")}</strong> {word.toLowerCase()}
          </button>
        );
      })}
    </fieldset>
  );
}

interface FacetValue {
  readonly value: string;
  readonly word: string;
  readonly tone?: string;
}

interface FacetProps {
  filter: Filter;
  label: string;
  counts: Counts | undefined;
  /** The values that are always listed, with their words. Absent: the most frequent ones are. */
  values?: readonly FacetValue[];
}

const shownMax = 8;

function Facet({ filter, label, counts, values }: FacetProps) {
  const part = useSignal("");
  const selected = chosen(filter);
  const counted = counts?.[filter] ?? [];
  const countOf = new Map(counted.map(({ value, count }) => [value, count]));
  const matching =
    part.value === "" ? counted : counted.filter(({ value }) => value.toLowerCase().includes(part.value.toLowerCase()));
  const listed = values?.filter(
    ({ value }) => (countOf.get(value) ?? 0) > 0 || selected.includes(value) || Number(value) !== 0,
  ) ?? [
    ...selected.map((value) => ({ value, word: value })),
    ...matching
      .filter(({ value }) => !selected.includes(value))
      .slice(0, shownMax)
      .map(({ value }) => ({ value, word: value })),
  ];
  if (values === undefined && counted.length === 0 && selected.length === 0) return null;
  return (
    <fieldset class={eventsLook.facet}>
      <legend>{label}</legend>
      {values === undefined && counted.length > shownMax && (
        <input
          type="search"
          aria-label={`Find among ${counted.length} values of ${label}`}
          placeholder={`Find among ${counted.length}`}
          value={part.value}
          onInput={({ currentTarget }) => {
            part.value = currentTarget.value;
          }}
        />
      )}
      {listed.map(({ value, word, tone }: FacetValue) => (
        <label key={value} class={ui.choice}>
          <input
            type="checkbox"
            checked={selected.includes(value)}
            onChange={({ currentTarget }) => {
              const others = selected.filter((each) => each !== value);
              choose(filter, currentTarget.checked ? [...others, value] : others);
            }}
          />
          <span class={ui.choiceWord} title={word}>
            {tone && <Sign tone={tone} />}
            {word}
          </span>
          <span class={eventsLook.choiceCount}>{counts ? (countOf.get(value) ?? 0).toLocaleString("en") : ""}</span>
        </label>
      ))}
    </fieldset>
  );
}
