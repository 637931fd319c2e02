import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { EventViewService } from "#gen/belfry/events/v1/view_service_pb.ts";
import { address, goTo, linkTo } from "../data/address.ts";
import { failureOf } from "../data/calls.ts";
import { say, sayFailure } from "../data/notice.ts";
import { may } from "../data/session.ts";
import ui from "../ui/ui.module.css";
import eventsLook from "./events.module.css";
import { isUsual } from "./grouping.ts";
import { showFacets } from "./own-facets.ts";
import { deleteView, parametersOf, readViews, saved, saveView, viewOf } from "./saved-filters.ts";

/** Longer than a name may be: stands for filters without one. */
const unsaved = "-".repeat(256);

export function SavedFilters() {
  const name = useSignal("");
  const naming = useSignal(false);
  const plain = isUsual(address.value.parameters);
  useEffect(() => {
    // Without them the list is as useful: the next visit asks again.
    void readViews().catch(() => undefined);
  }, []);
  const shown = viewOf("", address.value.parameters);
  const current = saved.value.find(({ query, display }) => query === shown.query && display === shown.display);
  const change = (changed: Promise<unknown>) => changed.catch((error) => sayFailure(failureOf(error).message));
  const keep = (event: Event) => {
    event.preventDefault();
    showFacets();
    void change(saveView(viewOf(name.value, address.peek().parameters)));
    naming.value = false;
    name.value = "";
  };
  if (naming.value) {
    return (
      <form class={eventsLook.saved} onSubmit={keep}>
        <input
          aria-label="Name of this view"
          placeholder="name of this view"
          required
          maxLength={255}
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
        aria-label="Views"
        value={current?.name ?? (plain ? "" : unsaved)}
        onChange={({ currentTarget }) => {
          const chosen = saved.value.find((each) => each.name === currentTarget.value);
          goTo(linkTo(["events"], chosen ? parametersOf(chosen) : {}));
        }}
      >
        <option value="">Open events</option>
        {!plain && !current && <option value={unsaved}>These filters</option>}
        {saved.value.map((each) => (
          <option key={each.name} value={each.name}>
            {each.name}
          </option>
        ))}
      </select>
      {!may(EventViewService.method.createEventView) ? null : current ? (
        <button
          type="button"
          class={ui.danger}
          onClick={() => {
            const { name: gone, query, display } = current;
            void change(
              deleteView(gone).then(() => say(`Deleted ${gone}`, () => saveView({ name: gone, query, display }))),
            );
          }}
        >
          Delete view
        </button>
      ) : (
        !plain && (
          <button
            type="button"
            onClick={() => {
              naming.value = true;
            }}
          >
            Save view
          </button>
        )
      )}
    </div>
  );
}
