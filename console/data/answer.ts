import { effect, type ReadonlySignal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Failure, failureOfReading, isCancelled, serverAway } from "./calls.ts";
import { answerHere, lastAnswer, rememberAnswer } from "./last-answers.ts";

/** How long after a failure a question is asked again while the server seems to be there. */
const askAgainMs = 2000;

/** The answer to a question that a screen asks, as it stands. The last answer stays in sight while the next is awaited. */
export interface Answer<T> {
  readonly value: T | undefined;
  readonly loading: boolean;
  readonly failure: Failure | undefined;
  again(): void;
}

/** The answer to the question as it is asked now: to one that is wrong there is none, whatever the one before was answered. */
export const answered = <T>({ value, failure }: Answer<T>) => (failure?.invalid ? undefined : value);

/**
 * Asks whenever the signals change that `ask` reads before its first `await`, and once more when the server is back. A question
 * that is out of date is cancelled.
 * @param of what it asks about, when that is no signal: another one asks again
 * @param kept the answer's name, unique at an address: a server that is away leaves the last answer of that address in sight
 * @param nameOf names the answer among those of all addresses
 */
export function useAnswer<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  of?: unknown,
  kept?: string,
  nameOf: (kept: string) => string = answerHere,
): ReadonlySignal<Answer<T>> {
  const round = useSignal(0);
  const again = () => {
    round.value = round.peek() + 1;
  };
  const last = useRef(of);
  useEffect(() => {
    if (last.current !== of) again();
    last.current = of;
  }, [of]);
  const state = useSignal<{ value?: T; loading: boolean; failure?: Failure }>({ loading: true });
  // At once, not with the next frame as useSignalEffect: until then another call may have found the server again.
  useEffect(() => {
    let wasAway = false;
    return effect(() => {
      const away = serverAway.value;
      if (!away && wasAway && state.peek().failure !== undefined) again();
      wasAway = away;
    });
  }, []);
  useSignalEffect(() => {
    round.value;
    const ended = new AbortController();
    let waiting: ReturnType<typeof setTimeout> | undefined;
    const key = kept && nameOf(kept);
    const { value } = state.peek();
    const asked = ask(ended.signal);
    state.value = { ...(value !== undefined && { value }), loading: true };
    asked.then(
      (answer) => {
        if (ended.signal.aborted) return;
        if (key) rememberAnswer(key, answer);
        state.value = { value: answer, loading: false };
      },
      (error) => {
        if (ended.signal.aborted || isCancelled(error)) return;
        const failure = failureOfReading(error);
        const before = (key && failure.away ? lastAnswer<T>(key) : undefined) ?? value;
        state.value = { ...(before !== undefined && { value: before }), loading: false, failure };
        // Another call may have found the server meanwhile, so that no return will be seen.
        if (failure.away && !serverAway.peek()) waiting = setTimeout(again, askAgainMs);
      },
    );
    return () => {
      clearTimeout(waiting);
      ended.abort();
    };
  });
  return useComputed(() => {
    const { value, loading, failure } = state.value;
    return {
      value,
      loading,
      failure,
      again,
    };
  });
}
