import type { Notes } from "../../metrics/notes.ts";
import type { WrittenSeries } from "./series-walk.ts";

/** A remote write request of either version, read a series at a time. */
export interface WriteRequest {
  /**
   * Its series and metadata, in their order; undefined where work may pause. A series is the same object as the one before, and
   * good until the next is asked for. @throws Unreadable
   */
  items(): Generator<WrittenSeries | WrittenMetadata | undefined>;
  /** Sets `key` to what names a series, with what is said of its metric; returns the rule that this breaks. @throws Unreadable */
  setKey(series: WrittenSeries): string | undefined;
  /** How many bytes the texts of its labels have. */
  labelBytes(series: WrittenSeries): number;
  /** Names and values of its labels in turn; a text: the rule that they break. @throws Unreadable */
  labels(series: WrittenSeries): string[] | string;
  /** What it says of its metric; undefined: nothing. A text: the rule that this breaks. @throws Unreadable */
  facts(series: WrittenSeries): Notes | string | undefined;
  /** Returns names and values of the labels of the series at this place, in turn and cut, as an answer shows them. */
  shownAt(at: number): Iterable<string>;
}

/** What Prometheus 1.0 says of a metric family, in a request of its own. */
export interface WrittenMetadata {
  /** Empty: no metric can have its name. */
  family: string;
  facts: Notes;
}
