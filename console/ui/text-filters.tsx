import { address, setParameters } from "../data/address.ts";
import ui from "./ui.module.css";

interface TextFilterProps {
  /** The parameter of the address. */
  readonly name: string;
  readonly label: string;
  readonly class?: string;
}

/** A filter by text, which is a parameter of the address. */
export function TextFilter({ name, label, ...look }: TextFilterProps) {
  return (
    <input
      {...look}
      type="search"
      aria-label={label}
      placeholder={label}
      value={address.value.parameters.get(name) ?? ""}
      onInput={({ currentTarget }) => setParameters({ [name]: currentTarget.value }, false)}
    />
  );
}

/** Several of them. */
export function TextFilters({ texts }: { texts: readonly (readonly [parameter: string, label: string])[] }) {
  return texts.map(([name, label]) => <TextFilter key={name} name={name} label={label} class={ui.short} />);
}

interface ChoiceFilterProps {
  readonly name: string;
  readonly label: string;
  /** Word for the choice of none. */
  readonly any?: string;
  readonly choices: readonly (readonly [value: string, word: string])[];
  /** The choice of an address without the parameter. */
  readonly first?: string;
  /** A parameter that a choice removes. */
  readonly clears?: string;
}

/** A filter by one of several values. */
export function ChoiceFilter({ name, label, any, choices, first = "", clears }: ChoiceFilterProps) {
  return (
    <select
      aria-label={label}
      value={address.value.parameters.get(name) ?? first}
      onChange={({ currentTarget }) =>
        setParameters({ [name]: currentTarget.value, ...(clears && { [clears]: undefined }) })
      }
    >
      {any !== undefined && <option value="">{any}</option>}
      {choices.map(([value, word]) => (
        <option key={value} value={value}>
          {word}
        </option>
      ))}
    </select>
  );
}

/** Tells whether a row's texts hold what was typed into the filter, whatever the case. */
export function passesFilter(...texts: readonly string[]): boolean {
  const wanted = (address.value.parameters.get("text") ?? "").toLowerCase();
  return wanted === "" || texts.some((text) => text.toLowerCase().includes(wanted));
}
