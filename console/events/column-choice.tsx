import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { knownFields } from "../clause/fields.ts";
import { Dialog } from "../ui/dialog.tsx";
import ui from "../ui/ui.module.css";
import eventsLook from "./events.module.css";

const columnsMax = 8;

interface ColumnChoiceProps {
  readonly columns: readonly string[];
  /** The wide ones among them. */
  readonly wide: readonly string[];
  change(columns: readonly string[], wide: readonly string[]): void;
}

/** Adds columns of any field to the list, orders, widens and removes them. */
export function ColumnChoice({ columns, wide, change }: ColumnChoiceProps) {
  const open = useSignal(false);
  const name = useSignal("");
  const id = useId();
  const add = (event: Event) => {
    event.preventDefault();
    if (!columns.includes(name.value)) change([...columns, name.value], wide);
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
            {columns.map((column, at) => (
              <li key={column}>
                <code>{column}</code>
                <span class={ui.inline}>
                  <label class={ui.inline}>
                    <input
                      type="checkbox"
                      aria-label={`Wide column ${column}`}
                      checked={wide.includes(column)}
                      onChange={({ currentTarget }) =>
                        change(
                          columns,
                          currentTarget.checked ? [...wide, column] : wide.filter((each) => each !== column),
                        )
                      }
                    />
                    wide
                  </label>
                  <button
                    type="button"
                    class={ui.plain}
                    aria-label={`Move the column ${column} to the front`}
                    disabled={at === 0}
                    onClick={() => change([column, ...columns.filter((each) => each !== column)], wide)}
                  >
                    ↑
                  </button>
                  <button
                    type="button"
                    class={ui.plain}
                    aria-label={`Remove the column ${column}`}
                    onClick={() =>
                      change(
                        columns.filter((each) => each !== column),
                        wide,
                      )
                    }
                  >
                    ×
                  </button>
                </span>
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
