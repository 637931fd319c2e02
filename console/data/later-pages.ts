import { useSignal } from "@preact/signals";
import { type Failure, failureOfOneRead } from "./calls.ts";

interface Page<T> {
  readonly rows: readonly T[];
  /** What leads to the next page; empty on the last one. */
  readonly next: string;
}

interface Held<T> extends Page<T> {
  /** The first page's answer: rows that follow another one are not shown. */
  readonly of: unknown;
  readonly reading: boolean;
  readonly failure?: Failure;
}

/** The pages after the first: they belong to its answer, and go with it. One that cannot be read is asked for by `again` alone. */
export function useLaterPages<V, T>(of: V | undefined, first: string, read: (of: V, next: string) => Promise<Page<T>>) {
  const state = useSignal<Held<T>>({ of: undefined, rows: [], next: "", reading: false });
  const held = (): Held<T> =>
    state.value.of === of ? state.value : { of, rows: [], next: of === undefined ? "" : first, reading: false };
  const again = async () => {
    const { rows, next, reading } = held();
    if (of === undefined || next === "" || reading) return;
    state.value = { of, rows, next, reading: true };
    try {
      const page = await read(of, next);
      if (state.peek().of === of) state.value = { of, rows: [...rows, ...page.rows], next: page.next, reading: false };
    } catch (error) {
      if (state.peek().of === of) state.value = { of, rows, next, reading: false, failure: failureOfOneRead(error) };
    }
  };
  const { rows, next, reading, failure } = held();
  return { rows, next, reading, failure, again, more: async () => failure === undefined && (await again()) };
}
