import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { goTo, linkTo } from "../data/address.ts";
import { useLoaded } from "../data/loaded.ts";
import { preference } from "../data/preferences.ts";
import { pressShortcut } from "../data/shortcuts.ts";
import { Dialog } from "../ui/dialog.tsx";
import ui from "../ui/ui.module.css";
import frameLook from "./frame.module.css";
import type { Screen } from "./screen.ts";

/** Whether single letters do something. People who dictate, or press keys by accident, turn them off. */
const letters = preference<"on" | "off">("letters", "on");

const open = signal<"finder" | "keys" | undefined>(undefined);
export const openFinder = () => {
  open.value = "finder";
};
export const openKeys = () => {
  open.value = "keys";
};
/** A browser says late that a dialog was closed: what has been opened since stays. */
const closing = (which: "finder" | "keys") => () => {
  if (open.peek() === which) open.value = undefined;
};
const closeFinder = closing("finder");
const closeKeys = closing("keys");

/** How long after `g` the letter of a screen is awaited. */
const waitMs = 3000;

/** Inputs and other things that take letters for themselves. */
const typing = (target: EventTarget | null) =>
  target instanceof Element &&
  target.closest("input, textarea, select, [contenteditable], [role=application]") !== null;

/** The first field that narrows what the screen lists. */
function toFilter(): boolean {
  const fields = document.querySelectorAll<HTMLElement>(
    "main input[type=search], main [data-filters] input, main [data-filters] select",
  );
  const field = [...fields].find((each) => each.checkVisibility());
  field?.focus();
  return field !== undefined;
}

/** Obeys the keys of the whole page. Returns the end of that. */
function listen(screens: readonly Screen[]): () => void {
  let goUntilMs = 0;
  const press = (event: KeyboardEvent) => {
    const { key, altKey, ctrlKey, metaKey } = event;
    if (event.defaultPrevented || event.repeat) return;
    if ((ctrlKey || metaKey) && !altKey && !event.shiftKey && key.toLowerCase() === "k") {
      event.preventDefault();
      open.value = open.value === "finder" ? undefined : "finder";
      return;
    }
    if (letters.value === "off" || altKey || ctrlKey || metaKey || typing(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const going = event.timeStamp < goUntilMs;
    goUntilMs = key === "g" && !going ? event.timeStamp + waitMs : 0;
    const screen = going ? screens.find((each) => each.letter === key) : undefined;
    if (screen) {
      goTo(linkTo([screen.name]));
      document.getElementById("main")?.focus();
    } else if (key === "?") openKeys();
    else if (key === "/" ? !toFilter() : !pressShortcut(key)) return;
    event.preventDefault();
  };
  document.addEventListener("keydown", press);
  return () => {
    document.removeEventListener("keydown", press);
    // Who logs in again after a session has ended finds the page as it begins.
    open.value = undefined;
  };
}

/** What finds anything by its name. */
export type FinderOf = ComponentType<{ screens: readonly Screen[]; close(): void }>;

interface KeysProps {
  readonly screens: readonly Screen[];
  /** Its code is loaded when it is first wanted. */
  loadFinder(): Promise<FinderOf>;
}

/** The keys of the whole page, and what they open. */
export function Keys({ screens, loadFinder }: KeysProps) {
  const Finder = useLoaded(loadFinder, open.value === "finder", closeFinder);
  useEffect(() => listen(screens), []);
  if (open.value === "keys") return <KeyMap screens={screens} />;
  return open.value === "finder" && Finder ? <Finder screens={screens} close={closeFinder} /> : null;
}

/** The keys that lists and plots know; Tab reaches everything else. */
const within: readonly (readonly [keys: string, what: string])[] = [
  ["↑ ↓ Page Home End", "move in a list"],
  ["j k", "to the next row, to the one before"],
  ["Space, x", "select; Space with Shift all up to there"],
  ["a c n", "acknowledge, close, annotate what is selected, all that is found, or the current event or group"],
  ["Enter", "open"],
  ["← →", "read the values of a plot"],
  ["Escape", "close what stands over the page"],
];

function KeyMap({ screens }: { screens: readonly Screen[] }) {
  const anywhere: readonly (readonly [string, string])[] = [
    ["Ctrl K, ⌘ K", "find anything by its name"],
    ["/", "to the first filter of the screen"],
    ["?", "these keys"],
    ...screens.flatMap(({ letter, label }) => (letter && label ? [[`g ${letter}`, `to ${label}`] as const] : [])),
  ];
  return (
    <Dialog title="Keyboard" close={closeKeys}>
      <div class={frameLook.keys}>
        <KeyTable caption="Everywhere" rows={anywhere} />
        <KeyTable caption="In lists and plots" rows={within} />
      </div>
      <label class={ui.inline}>
        <input
          type="checkbox"
          checked={letters.value === "on"}
          onChange={({ currentTarget }) => {
            letters.value = currentTarget.checked ? "on" : "off";
          }}
        />
        Keyboard shortcuts
      </label>
      <div class={ui.buttons}>
        <button type="button" onClick={closeKeys}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function KeyTable({ caption, rows }: { caption: string; rows: readonly (readonly [keys: string, what: string])[] }) {
  return (
    <table>
      <caption>{caption}</caption>
      <tbody>
        {rows.map(([keys, what]) => (
          <tr key={keys}>
            <th scope="row">
              <kbd>{keys}</kbd>
            </th>
            <td>{what}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
