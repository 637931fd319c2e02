import { useSignal } from "@preact/signals";
import { type Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { address } from "../data/address.ts";
import { plainName } from "./entity-names.ts";
import { choose, chosen, excluded, type Filter, filters } from "./query.ts";
import searchLook from "./search-field.module.css";
import { chooseTerms, terms, termsMax, termText } from "./terms.ts";
import { severityOf, statusWord } from "./words.tsx";

/** A filter or term that narrows the list, with its removal. */
interface Chip {
  readonly text: string;
  remove(): void;
}

/** Names of the filters, and of their values. */
const words: Readonly<Record<Filter, readonly [label: string, wordOf: (value: string) => string]>> = {
  severity: ["Severity", (value) => severityOf(Number(value) as Severity).word],
  status: ["Status", (value) => statusWord(Number(value) as Status)],
  acknowledged: ["Acknowledged", (value) => (value === "true" ? "Yes" : "No")],
  entityName: ["Entity", plainName],
  name: ["Name", (value) => value],
};

/** Of more values of a filter there is one chip; more chips have a line of their own. */
const chipsMax = 3;

/** The chips of a filter. Reads signals. */
function chipsOf(filter: Filter): Chip[] {
  const [label, wordOf] = words[filter];
  const given = address.value.parameters.has(filter);
  // Without a choice those without a status are listed with the open ones: they are open, too.
  const without = excluded(filter);
  const openOnes = filter === "status" && !given && without.length === 0;
  const values = openOnes ? [String(Status.OPEN)] : chosen(filter);
  return [
    ...chipsFor(`${label}:`, values, wordOf, (left) => choose(filter, left)),
    ...chipsFor(`${label}: not`, without, wordOf, (left) => choose(filter, chosen(filter), left)),
  ];
}

/** The chips of these values; `keep` keeps those that are left. */
function chipsFor(
  label: string,
  values: readonly string[],
  wordOf: (value: string) => string,
  keep: (left: readonly string[]) => void,
): Chip[] {
  if (values.length > chipsMax) return [{ text: `${label} ${values.length} values`, remove: () => keep([]) }];
  return values.map((value) => ({
    text: `${label} ${wordOf(value)}`,
    remove: () => keep(values.filter((each) => each !== value)),
  }));
}

/** Searches events by words and by labels: each term becomes a chip, and all of them hold. What facets have chosen stands beside them. */
export function SearchField() {
  const text = useSignal("");
  const chosenTerms = terms();
  const add = () => {
    const term = text.value.trim();
    if (term !== "" && !chosenTerms.includes(term)) chooseTerms([...chosenTerms, term]);
    text.value = "";
  };
  const chips: Chip[] = [
    ...filters.flatMap(chipsOf),
    ...chosenTerms.map((term) => ({
      text: termText(term),
      remove: () => chooseTerms(chosenTerms.filter((each) => each !== term)),
    })),
  ];
  return (
    <div class={chips.length > chipsMax ? `${searchLook.search} ${searchLook.many}` : searchLook.search}>
      {chips.map((chip) => (
        <button
          key={chip.text}
          type="button"
          class={searchLook.chip}
          aria-label={`Remove ${chip.text}`}
          title={chip.text}
          onClick={chip.remove}
        >
          <span>{chip.text}</span> ×
        </button>
      ))}
      <input
        type="search"
        aria-label="Search events"
        placeholder="words, or label=value"
        maxLength={1000}
        disabled={chosenTerms.length >= termsMax}
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
        }}
        onKeyDown={({ key }) => {
          if (key === "Enter") add();
          if (key === "Backspace" && text.value === "" && chosenTerms.length > 0) chooseTerms(chosenTerms.slice(0, -1));
        }}
      />
    </div>
  );
}
