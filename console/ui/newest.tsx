import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { List, Page } from "../data/list.ts";
import { type Moment, msOf } from "./time.tsx";
import ui from "./ui.module.css";

/** A list that comes up to date by itself, the newest rows first. */
interface Followed<T, Q> {
  readonly list: List<T, Q>;
  /** Reads the first page. */
  read(asked: Q): Promise<Page<T>>;
  keyOf(row: T): string;
  /** Returns the moment by which rows are ordered. */
  timeOf(row: T): Moment | undefined;
  /** The page is read again whenever this changes. */
  readonly beat: string;
  /** True while a person reads: new rows wait. */
  readonly reading: Signal<boolean>;
}

/** Keeps a list current: its first page is read again with each beat. New rows wait while one reads. */
export function useNewest<T, Q>({ list, read, keyOf, timeOf, beat, reading }: Followed<T, Q>) {
  const newest = useSignal<{ of: Q; page: Page<T> } | undefined>(undefined);
  const seen = useRef(beat);
  const asking = useRef(false);
  const shown = useRef<ReadonlySet<string>>(new Set());
  const { asked } = list;
  useEffect(() => {
    if (beat === seen.current || asked === undefined || asking.current) return;
    seen.current = beat;
    asking.current = true;
    void read(asked)
      .then((page) => {
        newest.value = { of: asked, page };
      })
      .catch(() => undefined)
      .finally(() => {
        asking.current = false;
      });
  }, [beat, asked]);

  const momentOf = (row: T) => msOf(timeOf(row) ?? 0);
  const page = newest.value !== undefined && newest.value.of === asked ? newest.value.page : undefined;
  const loaded = new Set(list.rows.map(keyOf));
  const first = page?.rows ?? [];
  const firstKeys = new Set(first.map(keyOf));
  const last = first.at(-1);
  const lastMs = last === undefined ? 0 : momentOf(last);
  const later =
    page?.next === "" ? [] : list.rows.filter((row) => !firstKeys.has(keyOf(row)) && momentOf(row) <= lastMs);
  // More have come than a page holds: what lies between is not known.
  const torn = page !== undefined && page.next !== "" && !first.some((row) => loaded.has(keyOf(row)));
  useEffect(() => {
    if (torn) list.again();
  }, [torn]);
  if (page === undefined || torn) {
    shown.current = loaded;
    return { list, waiting: 0 };
  }
  const waits = (row: T) => reading.value && !loaded.has(keyOf(row)) && !shown.current.has(keyOf(row));
  const rows = [...first.filter((row) => !waits(row)), ...later];
  if (!reading.value) shown.current = new Set(rows.map(keyOf));
  return {
    list: { ...list, rows, total: page.total ?? rows.length },
    waiting: first.length + later.length - rows.length,
  };
}

/** Says how many new rows wait, and shows them when pressed. */
export function WaitingRows({ count, reading }: { count: number; reading: Signal<boolean> }) {
  return (
    <p class={ui.waiting} role="status">
      {count > 0 && (
        <button
          type="button"
          class={ui.primary}
          onClick={() => {
            reading.value = false;
          }}
        >
          {count.toLocaleString("en")} new
        </button>
      )}
    </p>
  );
}
