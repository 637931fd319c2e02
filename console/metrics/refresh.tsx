import { type ReadonlySignal, type Signal, useSignal, useSignalEffect } from "@preact/signals";
import { address, setParameters } from "../data/address.ts";
import type { Answer } from "../data/answer.ts";
import { serverAway } from "../data/calls.ts";
import { nowMs, tickMs } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { parameters, type Read } from "./reading.ts";

/** The intervals of refreshes: their name in the address, their text, and ms. */
const choices = [
  ["30s", "30 s", 30_000],
  ["1m", "1 min", 60_000],
  ["5m", "5 min", 300_000],
] as const;

/** Tells whether the range of the address ends now, so that a later reading finds more. Reads signals. */
export const endsNow = () => !parameters.range.value.includes("-");

/** The choice of the address; undefined: the screen reads when it is asked to. Reads signals. */
export const refreshHere = () => (endsNow() ? choices.find(([name]) => name === parameters.refresh.value) : undefined);

/** Tells whether a person drags across a plot. */
const drags = () => document.querySelector("[role=application]:active") !== null;

/**
 * Reads again as often as the address says, by the page's present: that stands still while the page is out of sight. What failed is
 * not repeated here.
 * @returns whether it is read again by this alone; another question, or `false` set by whoever asks, ends that
 */
export function useRefresh(
  answers: readonly ReadonlySignal<Answer<unknown>>[],
  read: ReadonlySignal<Read | undefined>,
  again: () => void,
): Signal<boolean> {
  const byItself = useSignal(false);
  useSignalEffect(() => {
    address.value;
    byItself.value = false;
  });
  useSignalEffect(() => {
    const now = nowMs.value;
    const [, , everyMs] = refreshHere() ?? [];
    const readMs = read.peek()?.end;
    if (everyMs === undefined || readMs === undefined || serverAway.peek() || drags()) return;
    if (answers.some((each) => each.peek().loading || each.peek().failure !== undefined)) return;
    // The present moves in steps: the one that is nearest to the time is the right one.
    if (now - readMs < everyMs - tickMs / 2) return;
    byItself.value = true;
    again();
  });
  return byItself;
}

/** Chooses how often the screen reads by itself. */
export function RefreshChoice() {
  const fixed = !endsNow();
  return (
    <label class={ui.inline}>
      Refresh every
      <select
        value={refreshHere()?.[0] ?? ""}
        disabled={fixed}
        onChange={({ currentTarget }) => setParameters({ refresh: currentTarget.value })}
      >
        <option value="">{fixed ? "Off: the range does not end now" : "Off"}</option>
        {choices.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
