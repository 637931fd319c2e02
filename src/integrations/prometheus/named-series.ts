import { noNotes } from "../../metrics/notes.ts";
import type { NewSeries } from "../../metrics/point-batch.ts";
import { copyOf, hashOf, knownBytes } from "../known-bytes.ts";
import { knownFacts } from "./metric-facts.ts";
import { seriesOfLabels } from "./series-of-labels.ts";
import type { WrittenSeries } from "./series-walk.ts";
import type { SymbolOwner } from "./symbol-numbers.ts";
import type { BytesAt, WriteRequest, WrittenMetadata } from "./write-request.ts";

/** A series that was named before. */
export interface NamedSeries {
  readonly samples: NewSeries;
  /** Of native histograms: how many values, and their sum. */
  count?: NewSeries;
  sum?: NewSeries;
  factsVersion: number;
}

/** What series are named by: whose they are, and in a key of which version. */
export interface Namer extends SymbolOwner {
  readonly tenantId: string;
  /** Takes memory for a series that is made. @throws code 8 when there is no room */
  reserve(bytes: number): void;
  /** The rule that a further new series breaks, whose labels have this many bytes; undefined: none. */
  brokenSize(labelBytes: number): string | undefined;
}

/** The series that requests name, and what is said of their metrics. */
export interface NamedSeriesMemory {
  /** The one whose key has this hash and these bytes; undefined: it is not remembered. */
  find(namer: Namer, hash: number, bytes: Uint8Array, from: number, to: number): NamedSeries | undefined;
  /** The series of a request, which is remembered from now on; a text: the rule that it breaks. @throws Unreadable, code 8 */
  seriesOf(namer: Namer, request: WriteRequest, written: WrittenSeries): NamedSeries | string;
  learn(tenantId: string, metadata: WrittenMetadata, nowMs: number): void;
}

const rememberedBytesMax = 96 * 1024 * 1024;
/** Memory of a series that is remembered, beside its labels, and of a label beside its bytes, which are kept as texts, too. */
const [seriesBytes, labelBytes] = [300, 48];

/** Begins without any. */
export function namedSeriesMemory(entityLabels: ReadonlySet<string>): NamedSeriesMemory {
  const known = knownBytes<NamedSeries>(rememberedBytesMax);
  const facts = knownFacts();

  /** A series with what its metric's facts are by now. */
  function upToDate(tenantId: string, series: NamedSeries): NamedSeries {
    if (series.factsVersion === facts.version()) return series;
    series.factsVersion = facts.version();
    const { units, description, instrument } = facts.find(tenantId, series.samples.metric) ?? series.samples;
    Object.assign(series.samples, { units, description, instrument });
    return series;
  }

  function findKey(namer: Namer, { bytes, view, from, to }: BytesAt) {
    return known.find(namer.owner, hashOf(view, from, to) ^ namer.seed, bytes, from, to);
  }

  function make(namer: Namer, request: WriteRequest, written: WrittenSeries): NamedSeries | string {
    const size = request.labelBytes(written);
    const labels = namer.brokenSize(size) ?? request.labels(written);
    if (typeof labels === "string") return labels;
    const samples = seriesOfLabels(labels, entityLabels);
    if (typeof samples === "string") return samples;
    const weight = seriesBytes + size + (labels.length / 2) * labelBytes;
    namer.reserve(weight);
    const made = { samples, factsVersion: -1 };
    const { bytes, view, from, to } = request.newKey(written);
    known.set(namer.owner, hashOf(view, from, to) ^ namer.seed, copyOf(bytes, from, to), made, weight);
    return made;
  }

  return {
    find(namer, hash, bytes, from, to) {
      const found = known.find(namer.owner, hash ^ namer.seed, bytes, from, to);
      return found && upToDate(namer.tenantId, found);
    },
    seriesOf(namer, request, written) {
      if (written.broken !== undefined) return written.broken;
      const key = request.key(written);
      if (typeof key === "string") return key;
      const series = (key && findKey(namer, key)) ?? make(namer, request, written);
      if (typeof series === "string") return series;
      const said = request.facts(written);
      if (typeof said === "string") return said;
      if (said === undefined) return upToDate(namer.tenantId, series);
      Object.assign(series.samples, said);
      return series;
    },
    learn(tenantId, metadata, nowMs) {
      if (metadata.family !== "") facts.learn(tenantId, metadata.family, metadata.facts, nowMs);
    },
  };
}

/** The series of the values that a native histogram counts, or of their sums. */
export function suffixed({ metric, dimensions, labels }: NewSeries, suffix: string): NewSeries {
  return { metric: metric.slice(0, 255 - suffix.length) + suffix, dimensions, labels, ...noNotes };
}
