import { answered, useAnswer } from "./answer.ts";
import type { Failure } from "./calls.ts";
import { useLaterPages } from "./later-pages.ts";

/** A page of a list as the API answers it. */
export interface Page<T> {
  readonly rows: readonly T[];
  /** The token of the next page; empty on the last one. */
  readonly next: string;
  /** How many rows all pages have. Absent: the API does not say. */
  readonly total?: number;
}

/** A list as far as it is read. */
export interface List<T, Q = unknown> {
  readonly rows: readonly T[];
  /** Undefined until the first page is there. */
  readonly total: number | undefined;
  /** What the first page was asked with. */
  readonly asked: Q | undefined;
  readonly loading: boolean;
  readonly failure: Failure | undefined;
  /** Reads the first page again. */
  again(): void;
  /** Whether there is another page, whether one is loaded or asked for, and why it could not be read. */
  readonly later: {
    readonly next: string;
    readonly loaded: boolean;
    readonly reading: boolean;
    readonly failure: Failure | undefined;
  };
  more(): void;
  /** Reads a page again that could not be read. */
  moreAgain(): void;
}

/**
 * Reads a list page by page. It is read from its start whenever the signals change that `ask` reads, and every page with what the
 * first one was asked with.
 */
export function useList<T, Q>(
  ask: () => Q,
  read: (asked: Q, pageToken: string, options: { signal?: AbortSignal }) => Promise<Page<T>>,
): List<T, Q> {
  const answer = useAnswer(
    async (signal) => {
      const asked = ask();
      return { asked, page: await read(asked, "", { signal }) };
    },
    undefined,
    "list",
  );
  const { loading, failure, again } = answer.value;
  const value = answered(answer.value);
  const later = useLaterPages(value, value?.page.next ?? "", ({ asked }, next) => read(asked, next, {}));
  const first = value?.page.rows ?? [];
  const rows = later.rows.length === 0 ? first : [...first, ...later.rows];
  return {
    rows,
    total: value && (value.page.total ?? rows.length),
    asked: value?.asked,
    loading,
    failure,
    again,
    later: { ...later, loaded: later.rows.length > 0 || later.reading },
    more: () => void later.more(),
    moreAgain: () => void later.again(),
  };
}
