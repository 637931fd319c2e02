import type { Notes } from "../../metrics/notes.ts";
import type { WrittenSeries } from "./series-walk.ts";

/** A remote write request of either version, read a series at a time. */
export interface WriteRequest {
  /**
   * Its series and metadata, in their order; undefined where work may pause. A series is the same object as the one before, and
   * good until the next is asked for. @throws Unreadable
   */
  items(): Generator<WrittenSeries | WrittenMetadata | undefined>;
  /** The bytes that name a series; undefined: no series is remembered that has them. A text: the rule that its labels break. */
  key(series: WrittenSeries): BytesAt | string | undefined;
  /** The bytes under which a series is remembered. */
  newKey(series: WrittenSeries): BytesAt;
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

/** Bytes, and where those lie that are meant. */
export interface BytesAt {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  from: number;
  to: number;
}

/** All of these bytes. */
export const wholeOf = (bytes: Uint8Array): BytesAt => ({
  bytes,
  view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
  from: 0,
  to: bytes.byteLength,
});
