import { computed, effect, type Signal, signal } from "@preact/signals";
import { inSight } from "./in-sight.ts";
import { session } from "./session.ts";

const askAgainMs = 20_000;

/** The last answer to a question that no watch answers. */
interface Polled<T> {
  /** Undefined until the first answer in a session. */
  readonly value: Signal<T | undefined>;
  /** Asks at once; callers share the call that is under way. What is known stays if there is no answer. */
  ask(): Promise<void>;
  /** Asks again and again while there is a session that may, and the page is in sight. Called once, at the start. */
  start(): void;
}

export function polled<T>(read: () => Promise<T>, allowed: () => boolean): Polled<T> {
  const value = signal<T | undefined>(undefined);
  /** The call under way, and the session that made it. */
  let asking: { readonly of: string | undefined; readonly done: Promise<void> } | undefined;
  const askFor = async (of: string | undefined) => {
    const answer = await read().catch(() => undefined);
    if (answer !== undefined && session.peek()?.id === of) value.value = answer;
  };
  const ask = () => {
    const of = session.peek()?.id;
    if (asking !== undefined && asking.of === of) return asking.done;
    const done = askFor(of).finally(() => {
      if (asking?.done === done) asking = undefined;
    });
    asking = { of, done };
    return done;
  };
  const start = () => {
    const asker = computed(() => (session.value != null && allowed() ? session.value.id : undefined));
    effect(() => {
      value.value = undefined;
      if (asker.value === undefined) return;
      void ask();
      const rounds = setInterval(() => {
        if (inSight.peek()) void ask();
      }, askAgainMs);
      return () => clearInterval(rounds);
    });
  };
  return { value, ask, start };
}
