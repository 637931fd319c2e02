import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import ui from "../ui/ui.module.css";
import { askLabelNames, labelNames } from "./label-names.ts";
import { keepFacets, ownFacetsMax } from "./own-facets.ts";
import { labelPattern } from "./terms.ts";

/** Adds a facet of a label; those that open occurrences have are offered. */
export function FacetChoice({ labels }: { labels: readonly string[] }) {
  const name = useSignal("");
  const id = useId();
  const add = (event: Event) => {
    event.preventDefault();
    if (!labels.includes(name.value)) keepFacets([...labels, name.value]);
    name.value = "";
  };
  if (labels.length >= ownFacetsMax) return null;
  return (
    <form class={ui.inline} onSubmit={add}>
      <input
        class={ui.short}
        aria-label="Label to filter by"
        placeholder="own label"
        list={id}
        required
        pattern={labelPattern}
        maxLength={255}
        title="The name of a label, without spaces, = and !"
        value={name.value}
        onFocus={() => void askLabelNames()}
        onInput={({ currentTarget }) => {
          name.value = currentTarget.value;
        }}
      />
      <datalist id={id}>
        {labelNames.value
          .filter((each) => !labels.includes(each))
          .map((each) => (
            <option key={each} value={each} />
          ))}
      </datalist>
      <button type="submit">Add</button>
    </form>
  );
}
