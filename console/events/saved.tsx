import { useSignal } from "@preact/signals";
import { address, goTo, linkTo } from "../data/address.ts";
import eventsLook from "./events.module.css";
import { saved, savedText } from "./saved-filters.ts";

const savedMax = 50;
/** Longer than a name may be: stands for filters without one. */
const unsaved = "-".repeat(61);

export function SavedFilters() {
  const name = useSignal("");
  const naming = useSignal(false);
  const here = address.value.parameters.toString();
  const current = saved.value.find(({ query }) => query === here);
  const keep = (event: Event) => {
    event.preventDefault();
    const others = saved.value.filter((each) => each.name !== name.value);
    savedText.value = JSON.stringify([...others, { name: name.value, query: here }].slice(-savedMax));
    naming.value = false;
    name.value = "";
  };
  if (naming.value) {
    return (
      <form class={eventsLook.saved} onSubmit={keep}>
        <input
          aria-label="Name of this filter"
          placeholder="name of this filter"
          required
          maxLength={60}
          value={name.value}
          ref={(element) => element?.focus()}
          onInput={({ currentTarget }) => {
            name.value = currentTarget.value;
          }}
        />
        <button type="submit">Save</button>
        <button
          type="button"
          onClick={() => {
            naming.value = false;
          }}
        >
          Cancel
        </button>
      </form>
    );
  }
  return (
    <div class={eventsLook.saved}>
      <select
        aria-label="Saved filters"
        value={current?.name ?? (here === "" ? "" : unsaved)}
        onChange={({ currentTarget }) => {
          const chosen = saved.value.find((each) => each.name === currentTarget.value);
          goTo(linkTo(["events"], new URLSearchParams(chosen?.query ?? "")));
        }}
      >
        <option value="">Open events</option>
        {here !== "" && !current && <option value={unsaved}>These filters</option>}
        {saved.value.map((each) => (
          <option key={each.name} value={each.name}>
            {each.name}
          </option>
        ))}
      </select>
      {current ? (
        <button
          type="button"
          onClick={() => {
            savedText.value = JSON.stringify(saved.value.filter((each) => each !== current));
          }}
        >
          Forget
        </button>
      ) : (
        here !== "" && (
          <button
            type="button"
            onClick={() => {
              naming.value = true;
            }}
          >
            Save filter
          </button>
        )
      )}
    </div>
  );
}
