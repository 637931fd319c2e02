import { address, setParameters } from "../data/address.ts";

/** Filters by text, each a parameter of the address. */
export function TextFilters({ texts }: { texts: readonly (readonly [parameter: string, label: string])[] }) {
  return texts.map(([name, label]) => (
    <input
      key={name}
      type="search"
      class="short"
      aria-label={label}
      placeholder={label}
      value={address.value.parameters.get(name) ?? ""}
      onInput={({ currentTarget }) => setParameters({ [name]: currentTarget.value }, false)}
    />
  ));
}
