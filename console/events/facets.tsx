import type { Value } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { clientOf } from "../data/calls.ts";
import { memo } from "../ui/memo.ts";
import { countText } from "../ui/quantity.ts";
import { Sign } from "../ui/sign.tsx";
import ui from "../ui/ui.module.css";
import { entityText, sharedParts } from "./entity-names.ts";
import eventsLook from "./events.module.css";
import { FacetChoice } from "./facet-choice.tsx";
import { keepFacets, ownFacets } from "./own-facets.ts";
import { choose, chosen, excluded, type Filter, filters, queryOf } from "./query.ts";
import { chooseValues, terms, termsMax, valuesOf } from "./terms.ts";
import { severities, statuses } from "./words.tsx";

const events = clientOf(EventQueryService);

type ValueCounts = readonly { readonly value: string; readonly count: number }[];

/** Counts of occurrences by the values of each field, the most frequent first. */
export interface Counts extends Readonly<Record<Filter, ValueCounts>> {
  /** The same of labels, by their names. One that could not be counted is missing. */
  readonly labels: ReadonlyMap<string, ValueCounts>;
}

/**
 * Counts the values of all filters. A filter that has a choice is counted without it: that is how many would be listed if its other values
 * were chosen. Reads signals.
 */
export async function countFilters(signal: AbortSignal): Promise<Counts> {
  const narrowed = filters.filter((filter) => chosen(filter).length + excluded(filter).length > 0);
  const free = filters.filter((filter) => !narrowed.includes(filter));
  const asked = [
    { query: queryOf(), of: free },
    ...narrowed.map((filter) => ({ query: queryOf(filter), of: [filter] })),
  ];
  const count = async (query: ReturnType<typeof queryOf>, fields: readonly string[]) =>
    (await events.countEvents({ query, fields: fields.map((field) => ({ field })) }, { signal })).results;
  const labelled = ownFacets().map(async (label): Promise<[string, ValueCounts] | undefined> => {
    const field = `labels.${label}`;
    const counted = await count(queryOf(undefined, label), [field]).catch(() => undefined);
    return counted && [label, listed(counted[field]?.values)];
  });
  const answers = await Promise.all(asked.filter(({ of }) => of.length > 0).map(({ query, of }) => count(query, of)));
  const results = Object.assign({}, ...answers) as (typeof answers)[number];
  const labels = new Map((await Promise.all(labelled)).filter((each) => each !== undefined));
  const counts = Object.fromEntries(filters.map((filter) => [filter, listed(results[filter]?.values)]));
  return { ...(counts as Record<Filter, ValueCounts>), labels };
}

const listed = (values: readonly { value?: Value; count: bigint }[] = []): ValueCounts =>
  values.map(({ value, count }) => ({ value: textOf(value), count: Number(count) })).sort((a, b) => b.count - a.count);

const textOf = (value: Value | undefined) => (value?.kind.value === undefined ? "" : String(value.kind.value));

/** Shows the filters, each with its values and how many have them. */
export const Facets = memo(function Facets({ counts }: { counts: Counts | undefined }) {
  const parts = sharedParts(counts?.entityName.map(({ value }) => value) ?? []);
  const of = (filter: Filter) => ({
    counts: counts?.[filter],
    selected: chosen(filter),
    excluded: excluded(filter),
    choose: (values: readonly string[], without: readonly string[]) => choose(filter, values, without),
  });
  const labels = ownFacets();
  const full = terms().length >= termsMax;
  return (
    <div class={eventsLook.facets}>
      <Facet
        label="Severity"
        {...of("severity")}
        values={severities.map(({ value, word, tone }) => ({ value: String(value), word, tone }))}
      />
      <Facet
        label="Status"
        {...of("status")}
        values={statuses.map(({ value, word }) => ({ value: String(value), word }))}
      />
      <Facet
        label="Acknowledged"
        {...of("acknowledged")}
        values={[
          { value: "false", word: "No" },
          { value: "true", word: "Yes" },
        ]}
      />
      <Facet label="Entity" {...of("entityName")} wordOf={(name) => entityText(name, parts)} />
      <Facet label="Name" {...of("name")} />
      {labels.map((label) => (
        <Facet
          key={label}
          label={label}
          counts={counts?.labels.get(label)}
          selected={valuesOf(label)}
          excluded={valuesOf(label, true)}
          choose={(values, without) => chooseValues(label, values, without)}
          full={full}
          remove={() => keepFacets(labels.filter((each) => each !== label))}
        />
      ))}
      <FacetChoice labels={labels} />
    </div>
  );
});

interface FacetValue {
  readonly value: string;
  readonly word: string;
  readonly tone?: string;
}

interface FacetProps {
  readonly label: string;
  readonly counts: ValueCounts | undefined;
  readonly selected: readonly string[];
  readonly excluded: readonly string[];
  /** Lists occurrences of one of these values, and of none of those `without`. */
  choose(values: readonly string[], without: readonly string[]): void;
  /** The values that are always listed, with their words. Absent: the most frequent ones are. */
  readonly values?: readonly FacetValue[];
  /** Returns the word for a value. Absent: the value itself. */
  wordOf?(value: string): string;
  /** No more values can be chosen. */
  readonly full?: boolean;
  /** Removes the facet of a person's own. */
  remove?(): void;
}

const shownMax = 8;

function Facet(props: FacetProps) {
  const { label, counts, selected, excluded, choose, values, wordOf = (value) => value, full, remove } = props;
  const part = useSignal("");
  const counted = counts ?? [];
  const countOf = new Map(counted.map(({ value, count }) => [value, count]));
  const wanted = part.value.toLowerCase();
  const matching = wanted === "" ? counted : counted.filter(({ value }) => value.toLowerCase().includes(wanted));
  const narrowing = [...selected, ...excluded];
  const frequent = matching.filter(({ value }) => !narrowing.includes(value)).slice(0, shownMax);
  const shown: readonly FacetValue[] =
    values?.filter(({ value }) => (countOf.get(value) ?? 0) > 0 || narrowing.includes(value) || Number(value) !== 0) ??
    [...narrowing, ...frequent.map(({ value }) => value)].map((value) => ({ value, word: wordOf(value) }));
  if (shown.length === 0 && counted.length === 0 && remove === undefined) return null;
  return (
    <fieldset class={eventsLook.facet}>
      <legend>
        {label}
        {remove && (
          <button type="button" class={ui.plain} aria-label={`Remove the facet ${label}`} onClick={remove}>
            ×
          </button>
        )}
      </legend>
      {values === undefined && counted.length > shownMax && (
        <input
          type="search"
          aria-label={`Find among ${countText(counted.length)} values of ${label}`}
          placeholder={`Find among ${countText(counted.length)}`}
          value={part.value}
          onInput={({ currentTarget }) => {
            part.value = currentTarget.value;
          }}
        />
      )}
      {counts && shown.length === 0 && <p class={ui.hint}>Nothing that is listed has this label.</p>}
      {shown.map(({ value, word, tone }) => {
        const isOut = excluded.includes(value);
        const isIn = selected.includes(value);
        const withoutIt = (all: readonly string[]) => all.filter((each) => each !== value);
        return (
          <div key={value} class={eventsLook.value}>
            <label class={ui.choice}>
              <input
                type="checkbox"
                checked={isIn}
                disabled={full && !isIn && !isOut}
                onChange={() => choose(isIn ? withoutIt(selected) : [...selected, value], withoutIt(excluded))}
              />
              <span
                class={ui.choiceWord}
                title={word === value ? word : `${word}\n${value}`}
                data-out={isOut || undefined}
              >
                {tone && <Sign tone={tone} />}
                {word}
              </span>
              <span class={eventsLook.choiceCount}>{counts ? (countOf.get(value) ?? 0).toLocaleString("en") : ""}</span>
            </label>
            <button
              type="button"
              class={ui.plain}
              aria-pressed={isOut}
              disabled={full && !isIn && !isOut}
              onClick={() => choose(withoutIt(selected), isOut ? withoutIt(excluded) : [...excluded, value])}
            >
              <span class={ui.unseen}>Leave out {word} </span>−
            </button>
          </div>
        );
      })}
    </fieldset>
  );
}
