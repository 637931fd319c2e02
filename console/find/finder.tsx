import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import { goTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { useSettled } from "../data/settled.ts";
import type { Screen } from "../frame/screen.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Problem } from "../ui/problem.tsx";
import ui from "../ui/ui.module.css";
import findLook from "./find.module.css";
import type { Found } from "./found.ts";
import { foundHere, foundThere, placesOf } from "./sources.ts";

const wordsMax = 255;

/** Finds anything by its name: arrow keys move in what is found, Enter opens it. */
export function Finder({ screens, close }: { screens: readonly Screen[]; close(): void }) {
  const id = useId();
  const words = useSignal("");
  const active = useSignal(0);
  const places = useAnswer(() => placesOf(screens));
  const settled = useSettled(words.value);
  const there = useAnswer((signal) => foundThere(settled, signal), settled);
  const here = foundHere(places.value.value ?? [], words.value);
  const { value: known, failure, again } = there.value;
  const found = [...here, ...(words.value.trim() === "" ? [] : (known?.found ?? []))];
  const searching = known?.words !== words.value && failure === undefined;
  const current = Math.min(active.value, found.length - 1);
  useEffect(() => {
    document.getElementById(`${id}-${current}`)?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const open = (at: number) => {
    const chosen = found[at];
    // What was found for words before these is not what Enter means.
    if (chosen === undefined || (known?.words !== words.value && at >= here.length)) return;
    close();
    goTo(chosen.hash);
    document.getElementById("main")?.focus();
  };
  const press = (event: KeyboardEvent) => {
    const keys: Record<string, () => void> = {
      ArrowDown: () => {
        active.value = found.length === 0 ? 0 : (current + 1) % found.length;
      },
      ArrowUp: () => {
        active.value = found.length === 0 ? 0 : (current - 1 + found.length) % found.length;
      },
      Enter: () => open(current),
    };
    const act = keys[event.key];
    if (act === undefined || event.isComposing) return;
    event.preventDefault();
    act();
  };
  return (
    <Dialog title="Find anything" close={close}>
      <div class={findLook.finder}>
        <input
          role="combobox"
          aria-label="Find by name"
          aria-expanded={found.length > 0}
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={current >= 0 ? `${id}-${current}` : undefined}
          placeholder="a screen, entity, rule, trigger, destination, window or view"
          autocomplete="off"
          spellcheck={false}
          autofocus
          maxLength={wordsMax}
          value={words.value}
          onInput={({ currentTarget }) => {
            words.value = currentTarget.value;
            active.value = 0;
          }}
          onKeyDown={press}
        />
        <p class={ui.quiet} role="status">
          {searching ? "Searching…" : `${found.length} found`}
        </p>
        <Problem failure={failure ?? known?.failure} again={again} />
        <Groups id={id} found={found} current={current} open={open} />
      </div>
    </Dialog>
  );
}

interface GroupsProps {
  readonly id: string;
  readonly found: readonly Found[];
  readonly current: number;
  open(at: number): void;
}

/** What was found, kind by kind. */
function Groups({ id, found, current, open }: GroupsProps) {
  const kinds = Map.groupBy(
    found.map((each, at) => ({ ...each, at })),
    ({ kind }) => kind,
  );
  return (
    <div id={id} role="listbox" aria-label="Found" tabIndex={-1}>
      {[...kinds].map(([kind, of]) => (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset is of forms
        <div key={kind} role="group" aria-labelledby={`${id}-${kind}`}>
          <p id={`${id}-${kind}`} class={ui.hint} role="presentation">
            {kind}
          </p>
          {of.map(({ at, name, beside, hash }) => (
            // biome-ignore lint/a11y/useFocusableInteractive: the input has the focus, and names its active option
            // biome-ignore lint/a11y/useKeyWithClickEvents: the input has the keys
            <div
              key={hash}
              id={`${id}-${at}`}
              role="option"
              aria-selected={at === current}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => open(at)}
            >
              {name} {beside && <span class={ui.quiet}>{beside}</span>}
            </div>
          ))}
        </div>
      ))}
    </div>
  );
}
