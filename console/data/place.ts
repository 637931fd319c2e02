import { effect, type Signal, useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo } from "preact/hooks";
import { address } from "./address.ts";

/** What a list had when it was left, by the entry of the browser's history: going back finds it again. */
const places = new Map<string, unknown>();
const placesMax = 200;
let entries = 0;

/** Returns the name of this entry of the history, which stays the same when a person comes back to it. */
function entryName(): string {
  const state = history.state as { entry?: string } | null;
  if (state?.entry !== undefined) return state.entry;
  entries += 1;
  const entry = `${entries} ${performance.now()}`;
  history.replaceState({ ...state, entry }, "", location.hash || undefined);
  return entry;
}

function keep(key: string, value: unknown): void {
  places.delete(key);
  places.set(key, value);
  const [oldest] = places.keys();
  if (places.size > placesMax && oldest !== undefined) places.delete(oldest);
}

/** A value that is what it was when a person comes back to this address by Back or Forward. */
export function usePlace<T>(name: string, first: T): Signal<T> {
  const before = useMemo(() => {
    const key = `${entryName()} ${name}`;
    return places.has(key) ? (places.get(key) as T) : first;
  }, []);
  const kept = useSignal<T>(before);
  // At once, not after the page is drawn: the next thing may lead elsewhere.
  useLayoutEffect(
    () =>
      effect(() => {
        // Parameters that change while it is shown make entries of their own.
        address.value;
        keep(`${entryName()} ${name}`, kept.value);
      }),
    [],
  );
  return kept;
}
