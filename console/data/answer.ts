import { type ReadonlySignal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Failure, failureOfReading, isCancelled, serverAway } from "./calls.ts";

/** The answer to a question that a screen asks, as it stands. The last answer stays in sight while the next is awaited. */
export interface Answer<T> {
  readonly value: T | undefined;
  readonly loading: boolean;
  readonly failure: Failure | undefined;
  again(): void;
}

/**
 * Asks whenever the signals change that `ask` reads before its first `await`, and once more when the server is back. A question
 * that is out of date is cancelled.
 * @param of what it asks about, when that is no signal: another one asks again
 */
export function useAnswer<T>(ask: (signal: AbortSignal) => Promise<T>, of?: unknown): ReadonlySignal<Answer<T>> {
  const round = useSignal(0);
  const last = useRef(of);
  useEffect(() => {
    if (last.current !== of) round.value = round.peek() + 1;
    last.current = of;
  }, [of]);
  const state = useSignal<{ value?: T; loading: boolean; failure?: Failure }>({ loading: true });
  const wasAway = useSignal(false);
  useSignalEffect(() => {
    const away = serverAway.value;
    if (!away && wasAway.peek() && state.peek().failure !== undefined) round.value = round.peek() + 1;
    wasAway.value = away;
  });
  useSignalEffect(() => {
    round.value;
    const ended = new AbortController();
    const { value } = state.peek();
    const asked = ask(ended.signal);
    state.value = { ...(value !== undefined && { value }), loading: true };
    asked.then(
      (answer) => {
        if (!ended.signal.aborted) state.value = { value: answer, loading: false };
      },
      (error) => {
        if (ended.signal.aborted || isCancelled(error)) return;
        state.value = { ...(value !== undefined && { value }), loading: false, failure: failureOfReading(error) };
      },
    );
    return () => ended.abort();
  });
  return useComputed(() => {
    const { value, loading, failure } = state.value;
    return {
      value,
      loading,
      failure,
      again() {
        round.value = round.peek() + 1;
      },
    };
  });
}
