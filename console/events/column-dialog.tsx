import { useSignal } from "@preact/signals";
import { useId, useRef } from "preact/hooks";
import { knownFields } from "../clause/fields.ts";
import { Dialog } from "../ui/dialog.tsx";
import { useFocusKept } from "../ui/focus-kept.ts";
import ui from "../ui/ui.module.css";
import { builtIn, fieldsIn, nameKey } from "./columns.tsx";
import eventsLook from "./events.module.css";

const columnsMax = 8;

/** Returns the built-in columns that are hidden. */
const hiddenIn = (columns: readonly string[]) => [...builtIn.keys()].filter((column) => !columns.includes(column));

/** Adds a hidden built-in column after the last one that usually precedes it. */
function withShown(columns: readonly string[], column: string): string[] {
  const order = [...builtIn.keys()];
  const before = order.slice(0, order.indexOf(column));
  return columns.toSpliced(columns.findLastIndex((each) => before.includes(each)) + 1, 0, column);
}

/** Adds a column of a field, before the status and the times. */
function withField(columns: readonly string[], field: string): string[] {
  const at = columns.findIndex((each) => ["*status", "*startTime", "*lastSeen"].includes(each));
  return columns.toSpliced(at === -1 ? columns.length : at, 0, field);
}

export interface ColumnDialogProps {
  /** The columns that are shown, built-in ones and those of fields, in order. */
  readonly columns: readonly string[];
  /** The wide ones among them. */
  readonly wide: readonly string[];
  change(columns: readonly string[], wide: readonly string[]): void;
  close(): void;
}

/** Adds columns of any field to the list, orders and widens them, and hides any but the name. */
export function ColumnDialog({ columns, wide, change, close }: ColumnDialogProps) {
  const name = useSignal("");
  const id = useId();
  const list = useRef<HTMLUListElement>(null);
  useFocusKept(list, () => list.current?.querySelector<HTMLElement>("button:not(:disabled)") ?? null);
  const hidden = hiddenIn(columns);
  const add = (event: Event) => {
    event.preventDefault();
    // A label is asked for by its bare name: `labels.` leads clauses to it, and no field of an occurrence has it.
    const field = name.value.replace(/^labels\./, "");
    if (!columns.includes(field)) change(withField(columns, field), wide);
    name.value = "";
  };
  return (
    <Dialog title="Columns" close={close}>
      <ul ref={list} class={eventsLook.chosenColumns}>
        {columns.map((column, at) => (
          <ColumnLine
            key={column}
            column={column}
            first={at === 0}
            wide={wide.includes(column)}
            widen={(on) => change(columns, on ? [...wide, column] : wide.filter((each) => each !== column))}
            forward={() => change(columns.toSpliced(at, 1).toSpliced(at - 1, 0, column), wide)}
            remove={() =>
              change(
                columns.filter((each) => each !== column),
                wide,
              )
            }
          />
        ))}
        {hidden.map((column) => (
          <li key={column}>
            <span class={ui.quiet}>{builtIn.get(column)}</span>
            <button
              type="button"
              class={ui.plain}
              aria-label={`Show the column ${builtIn.get(column)}`}
              onClick={() => change(withShown(columns, column), wide)}
            >
              Show
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
        <button type="submit" disabled={fieldsIn(columns).length >= columnsMax}>
          Add
        </button>
      </form>
    </Dialog>
  );
}

interface ColumnLineProps {
  readonly column: string;
  readonly first: boolean;
  readonly wide: boolean;
  widen(on: boolean): void;
  forward(): void;
  remove(): void;
}

function ColumnLine({ column, first, wide, widen, forward, remove }: ColumnLineProps) {
  const label = builtIn.get(column);
  const name = label ?? column;
  return (
    <li>
      {label ?? <code>{column}</code>}
      <span class={ui.inline}>
        {label === undefined && (
          <label class={ui.inline}>
            <input
              type="checkbox"
              aria-label={`Wide column ${column}`}
              checked={wide}
              onChange={({ currentTarget }) => widen(currentTarget.checked)}
            />
            wide
          </label>
        )}
        <button
          type="button"
          class={ui.plain}
          aria-label={`Move the column ${name} forward`}
          disabled={first}
          onClick={forward}
        >
          ↑
        </button>
        {column !== nameKey && (
          <button
            type="button"
            class={ui.plain}
            aria-label={`${label === undefined ? "Remove" : "Hide"} the column ${name}`}
            onClick={remove}
          >
            ×
          </button>
        )}
      </span>
    </li>
  );
}
