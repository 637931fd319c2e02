import { computed, effect, type Signal, signal } from "@preact/signals";
import { inSight } from "./in-sight.ts";
import { session } from "./session.ts";

const askAgainMs = 20_000;

/** What the server said last of something that no watch tells. */
interface Polled<T> {
  /** Undefined until the first answer in a session. */
  readonly value: Signal<T | undefined>;
  /** Asks at once. What is known stays if there is no answer. */
  ask(): Promise<void>;
  /** Asks again and again while there is a session that may, and the page is in sight. Called once, at the start. */
  start(): void;
}

export function polled<T>(read: () => Promise<T>, allowed: () => boolean): Polled<T> {
  const value = signal<T | undefined>(undefined);
  const ask = async () => {
    const of = session.peek()?.id;
    const answer = await read().catch(() => undefined);
    if (answer !== undefined && session.peek()?.id === of) value.value = answer;
  };
  const start = () => {
    const asker = computed(() => (session.value != null && allowed() ? session.value.id : undefined));
    effect(() => {
      value.value = undefined;
      if (asker.value === undefined) return;
      void ask();
      const asking = setInterval(() => {
        if (inSight.peek()) void ask();
      }, askAgainMs);
      return () => clearInterval(asking);
    });
  };
  return { value, ask, start };
}
