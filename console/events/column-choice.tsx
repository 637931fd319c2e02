import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { knownFields } from "../clause/fields.ts";
import { Dialog } from "../ui/dialog.tsx";
import ui from "../ui/ui.module.css";
import eventsLook from "./events.module.css";

const columnsMax = 8;

/** Adds columns of any field to the list, and removes them. */
export function ColumnChoice({
  columns,
  change,
}: {
  columns: readonly string[];
  change(columns: readonly string[]): void;
}) {
  const open = useSignal(false);
  const name = useSignal("");
  const id = useId();
  const add = (event: Event) => {
    event.preventDefault();
    if (!columns.includes(name.value)) change([...columns, name.value]);
    name.value = "";
  };
  return (
    <>
      <button
        type="button"
        onClick={() => {
          open.value = true;
        }}
      >
        Columns
      </button>
      {open.value && (
        <Dialog
          title="Columns"
          close={() => {
            open.value = false;
          }}
        >
          <ul class={eventsLook.chosenColumns}>
            {columns.map((column) => (
              <li key={column}>
                <code>{column}</code>
                <button
                  type="button"
                  class={ui.plain}
                  aria-label={`Remove the column ${column}`}
                  onClick={() => change(columns.filter((each) => each !== column))}
                >
                  ×
                </button>
              </li>
            ))}
          </ul>
          <form onSubmit={add} class={ui.inline}>
            <label for={`${id}-field`}>Field</label>
            <input
              id={`${id}-field`}
              list={id}
              required
              placeholder="dimensions.host"
              value={name.value}
              onInput={({ currentTarget }) => {
                name.value = currentTarget.value;
              }}
            />
            <datalist id={id}>
              {knownFields("event").map((field) => (
                <option key={field.name} value={field.name} label={field.label} />
              ))}
            </datalist>
            <button type="submit" disabled={columns.length >= columnsMax}>
              Add
            </button>
          </form>
        </Dialog>
      )}
    </>
  );
}
