import { useSignal } from "@preact/signals";
import { listText, setParameters } from "../data/address.ts";
import searchLook from "./search-field.module.css";
import { terms, termsMax, termsParameter } from "./terms.ts";

const choose = (chosen: readonly string[]) => setParameters({ [termsParameter]: listText(chosen) });

/** Searches events by words and by labels: each term becomes a chip, and all of them hold. */
export function SearchField() {
  const text = useSignal("");
  const chosen = terms();
  const add = () => {
    const term = text.value.trim();
    if (term !== "" && !chosen.includes(term)) choose([...chosen, term]);
    text.value = "";
  };
  return (
    <div class={searchLook.search}>
      {chosen.map((term) => (
        <button
          key={term}
          type="button"
          class={searchLook.chip}
          aria-label={`Remove ${term}`}
          title={term}
          onClick={() => choose(chosen.filter((each) => each !== term))}
        >
          <span>{term}</span> ×
        </button>
      ))}
      <input
        type="search"
        aria-label="Search events"
        placeholder="words, or label=value"
        maxLength={1000}
        disabled={chosen.length >= termsMax}
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
        }}
        onKeyDown={({ key }) => {
          if (key === "Enter") add();
          if (key === "Backspace" && text.value === "" && chosen.length > 0) choose(chosen.slice(0, -1));
        }}
      />
    </div>
  );
}
