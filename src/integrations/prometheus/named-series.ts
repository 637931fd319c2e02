import { Buffer } from "node:buffer";
import { type Notes, noNotes } from "../../metrics/notes.ts";
import type { NewSeries } from "../../metrics/point-batch.ts";
import { keptKey, kinds, ownerOf } from "../../metrics/series-key.ts";
import { found, type Segment, type TenantSeries } from "../../metrics/series-memory.ts";
import type { KnownFacts } from "./metric-facts.ts";
import { seriesOfLabels } from "./series-of-labels.ts";
import type { WrittenSeries } from "./series-walk.ts";
import type { WriteRequest } from "./write-request.ts";

/** The place that the points of a series go to. */
export interface SeriesPlace {
  readonly series: Segment | NewSeries;
  readonly entry: number;
}

/** The suffixes of series made of one: its samples, and of native histograms the count and the sum of their values. */
export const suffixes = ["", "_count", "_sum"] as const;
export type Made = 0 | 1 | 2;

/** Finds the series of a request. */
interface Naming {
  readonly version: 1 | 2;
  readonly tenantId: string;
  readonly known: TenantSeries;
  readonly facts: KnownFacts;
  readonly entityLabels: ReadonlySet<string>;
  readonly nowMs: number;
  /** Takes memory for a series that is made. @throws code 8 when there is no room */
  reserve(bytes: number): void;
}

/** Finds or makes the series of a request. */
export interface SeriesNamer {
  /** Sets `found` to the series of samples whose labels are `key`, in version 1. */
  find(): boolean;
  /** A text: the rule that the series breaks. @throws Unreadable, code 8 */
  place(request: WriteRequest, written: WrittenSeries, made: Made): SeriesPlace | string;
}

/** Bytes of labels of new series: a request of version 2 may name one symbol again and again. */
const newBytesMax = 4 * 1024 * 1024;
/** Memory of a series that is made, beside its labels, and of a label beside its bytes, which are made into texts, too. */
const [seriesBytes, labelBytes] = [300, 48];

/** Begins a request. */
export function seriesNamer({ version, tenantId, known, facts, entityLabels, nowMs, reserve }: Naming): SeriesNamer {
  const kind = version === 1 ? kinds.labels : kinds.references;
  const owners = suffixes.map((_, made) => ownerOf(kind, 0, made));
  // What version 1 says of metrics comes in requests of its own.
  const factsVersion = version === 1 ? facts.version(tenantId) : 0;
  const saidOf = suffixes.map(
    (suffix, made) => (metric: string) =>
      ofMade(facts.find(tenantId, metric.slice(0, metric.length - suffix.length)), made),
  );
  /** The series that were made for this request, by their keys. */
  const fresh = new Map<string, NewSeries[] | string>();
  let newBytes = 0;

  const find = (made: number) =>
    version === 1
      ? known.find(owners[made] as number, nowMs, factsVersion, saidOf[made])
      : known.find(owners[made] as number, nowMs);

  function seriesMade(request: WriteRequest, written: WrittenSeries): NewSeries[] | string {
    const size = request.labelBytes(written);
    newBytes += size;
    if (version === 2 && newBytes > newBytesMax)
      return `the labels of new series in a request may have at most ${newBytesMax} bytes`;
    const kept = keptKey(0, factsVersion);
    const labels = request.labels(written);
    if (typeof labels === "string") return labels;
    const names = seriesOfLabels(labels, entityLabels);
    if (typeof names === "string") return names;
    const said = request.facts(written) ?? (version === 1 ? facts.find(tenantId, names.metric) : noNotes);
    if (typeof said === "string") return said;
    reserve(seriesBytes + size + (labels.length / 2) * labelBytes);
    return suffixes.map((suffix, made) => {
      const metric = suffix === "" ? names.metric : names.metric.slice(0, 255 - suffix.length) + suffix;
      return { ...names, metric, ...ofMade(said, made), key: { ...kept, owner: owners[made] as number } };
    });
  }

  return {
    find: () => find(0),
    place(request, written, made) {
      const rule = written.broken ?? request.setKey(written);
      if (rule !== undefined) return rule;
      if (find(made)) return { series: found.segment, entry: found.entry };
      const text = Buffer.from(keptKey(0).bytes.buffer).toString("latin1");
      const series = fresh.get(text) ?? seriesMade(request, written);
      // Its memory is not reserved: a broken one is not kept.
      if (typeof series === "string") return series;
      fresh.set(text, series);
      return { series: series[made] as NewSeries, entry: 0 };
    },
  };
}

/** Returns the notes of a series that is made of a metric. */
const ofMade = (said: Readonly<Notes>, made: number): Notes =>
  made === 0 ? said : { ...noNotes, instrument: said.instrument };
