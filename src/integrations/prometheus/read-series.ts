import { crc32 } from "node:zlib";
import { Code } from "@connectrpc/connect";
import type { Config } from "../../config/settings.ts";
import { noNotes } from "../../metrics/notes.ts";
import type { CheckedPoints, CheckedSeries } from "../../receiver/put-points.ts";
import { refusalOf } from "../../wire/status.ts";
import type { Call } from "../integration.ts";
import { copyOf, hashOf, knownBytes } from "../known-bytes.ts";
import { orUnreadable } from "./message-walk.ts";
import { knownFacts } from "./metric-facts.ts";
import { type Outcome, outcome } from "./outcome.ts";
import { seriesOfLabels } from "./series-of-labels.ts";
import { scanned, scanSeries } from "./series-scan.ts";
import type { WrittenSeries } from "./series-walk.ts";
import { symbolNumbers } from "./symbol-numbers.ts";
import { version1 } from "./version1.ts";
import { version2 } from "./version2.ts";
import { type BytesAt, wholeOf } from "./write-request.ts";

/** A series that was named before. */
interface NamedSeries {
  samples: CheckedSeries;
  /** Of native histograms: how many values, and their sum. */
  count?: CheckedSeries;
  sum?: CheckedSeries;
  factsVersion: number;
}

/** What a request holds, read whole before anything of it is stored. */
export interface ReadRequest {
  points: CheckedPoints;
  outcome: Outcome;
}

/** Reads requests, and remembers the series that they name. */
export interface SeriesReader {
  /** @throws Unreadable; code 8 where a request holds too much */
  read(bytes: Uint8Array, version: 1 | 2, call: Call): Promise<ReadRequest>;
}

/** Bytes of labels that are made into texts, and stored: a request of version 2 may name one symbol again and again. */
const newBytesMax = 4 * 1024 * 1024;
const rememberedBytesMax = 96 * 1024 * 1024;
/** What a series takes that is remembered, beside its labels; what each of these takes beside its bytes, which are kept as texts, too. */
const [seriesBytes, labelBytes] = [300, 48];
/** What a sample takes until it is answered, and for how many memory is reserved at once. */
const [sampleBytes, reservedAtOnce] = [48, 1000];
const notFinite = "the value must be finite";

/** Begins without any series. */
export function seriesReader({
  receiverItemsMax,
  entityLabels,
}: Pick<Config, "receiverItemsMax" | "entityLabels">): SeriesReader {
  const known = knownBytes<NamedSeries>(rememberedBytesMax);
  const symbols = symbolNumbers();
  const facts = knownFacts();

  /** A series with what is said of its metric by now. */
  function upToDate(tenantId: string, series: NamedSeries): NamedSeries {
    if (series.factsVersion === facts.version()) return series;
    series.factsVersion = facts.version();
    const { units, description, instrument } = facts.find(tenantId, series.samples.metric) ?? series.samples;
    Object.assign(series.samples, { units, description, instrument });
    return series;
  }

  return {
    async read(bytes, version, { tenantId, nowMs, pace, reserve }) {
      reserve(bytes.byteLength);
      const points: CheckedPoints = { series: [], times: [], values: [] };
      const now = nowMs();
      let [items, reserved, newBytes] = [0, 0, 0];
      const count = (more: number) => {
        items += more;
        if (items > receiverItemsMax)
          throw refusalOf(Code.ResourceExhausted, 413, `a request may have at most ${receiverItemsMax} samples`);
        for (; reserved < items; reserved += reservedAtOnce) reserve(reservedAtOnce * sampleBytes);
      };
      // The names of a series in version 1 are no numbers of symbols. The same of many tenants are no entries of one hash.
      const owner = { owner: `${tenantId} ${version}`, seed: crc32(tenantId) };
      const hash = ({ view, from, to }: BytesAt) => hashOf(view, from, to) ^ owner.seed;
      const find = (key: BytesAt) => known.find(owner.owner, hash(key), key.bytes, key.from, key.to);
      const whole = wholeOf(bytes);
      const take = (from: number, to: number, at: number): boolean => {
        if (!scanSeries(bytes, whole.view, from, to)) return false;
        const found = known.find(owner.owner, scanned.hash ^ owner.seed, bytes, from, scanned.labelsEnd);
        if (found === undefined) return false;
        count(Math.max(1, scanned.times.length));
        addSamples(read, upToDate(tenantId, found).samples, at, scanned);
        return true;
      };
      const request = version === 1 ? version1(bytes, take) : version2(bytes, { symbols, owner, reserve });
      const read: ReadRequest = { points, outcome: outcome(request.shownAt) };

      /** A series that is not remembered; a text: the rule that it breaks. */
      function make(written: WrittenSeries): NamedSeries | string {
        const size = request.labelBytes(written);
        newBytes += size;
        if (version === 2 && newBytes > newBytesMax)
          return `the labels of new series in a request may have at most ${newBytesMax} bytes`;
        const labels = request.labels(written);
        if (typeof labels === "string") return labels;
        const samples = seriesOfLabels(labels, entityLabels);
        if (typeof samples === "string") return samples;
        const weight = seriesBytes + size + (labels.length / 2) * labelBytes;
        reserve(weight);
        const made = { samples, factsVersion: -1 };
        const key = request.newKey(written);
        known.set(owner.owner, hash(key), copyOf(key.bytes, key.from, key.to), made, weight);
        return made;
      }

      function seriesOf(written: WrittenSeries): NamedSeries | string {
        if (written.broken !== undefined) return written.broken;
        const key = request.key(written);
        if (typeof key === "string") return key;
        const series = (key && find(key)) ?? make(written);
        if (typeof series === "string") return series;
        const said = request.facts(written);
        if (typeof said === "string") return said;
        if (said === undefined) return upToDate(tenantId, series);
        Object.assign(series.samples, said);
        return series;
      }

      for (const item of readable(request.items())) {
        const wait = pace();
        if (wait !== undefined) await wait;
        if (item === undefined) continue;
        if ("family" in item) {
          count(1);
          if (item.family !== "") facts.learn(tenantId, item.family, item.facts, now);
          continue;
        }
        const series = orUnreadable(() => seriesOf(item));
        count(typeof series === "string" ? 1 : Math.max(1, item.times.length + item.histograms.length));
        add(read, series, item);
      }
      return read;
    },
  };
}

/** Adds the samples of a series whose length stands at a place. */
function addSamples(
  { points, outcome: to }: ReadRequest,
  series: CheckedSeries,
  at: number,
  { times, values }: { readonly times: readonly number[]; readonly values: readonly number[] },
): void {
  for (let i = 0; i < times.length; i++) {
    const value = values[i] as number;
    // Not a number: the mark of a series that has ended, or what had no value.
    if (Number.isNaN(value)) to.skip("samples");
    else if (!Number.isFinite(value)) to.refuse(at, "samples", notFinite);
    else {
      to.place(at, "samples");
      points.series.push(series);
      points.times.push(times[i] as number);
      points.values.push(value);
    }
  }
}

/** Adds what a request says of one series; a text: the rule that it breaks. */
function add({ points, outcome: to }: ReadRequest, series: NamedSeries | string, written: WrittenSeries): void {
  const { at, times, histograms } = written;
  if (typeof series === "string") {
    to.refuse(at, "samples", series, times.length);
    to.refuse(at, "histograms", series, histograms.length);
    return;
  }
  const put = (own: CheckedSeries, timeMs: number, value: number) => {
    points.series.push(own);
    points.times.push(timeMs);
    points.values.push(value);
  };
  addSamples({ points, outcome: to }, series.samples, at, written);
  for (const { timeMs, count, sum } of histograms) {
    // A histogram that has ended has a sum that is not a number, and one of values that are not numbers, too.
    if (Number.isNaN(sum)) to.skip("histograms");
    else if (!Number.isFinite(sum) || !Number.isFinite(count)) to.refuse(at, "histograms", notFinite);
    else {
      const { samples } = series;
      series.count ??= suffixed(samples, "_count");
      series.sum ??= suffixed(samples, "_sum");
      to.place(at, "histograms");
      series.count.instrument = series.sum.instrument = samples.instrument;
      put(series.count, timeMs, count);
      to.place(at, undefined);
      put(series.sum, timeMs, sum);
    }
  }
}

function suffixed({ metric, dimensions, labels }: CheckedSeries, suffix: string): CheckedSeries {
  return { metric: metric.slice(0, 255 - suffix.length) + suffix, dimensions, labels, ...noNotes };
}

/** Each item, or what is wrong with the bytes. */
function* readable<T>(items: Iterable<T>): Generator<T> {
  const all = items[Symbol.iterator]();
  for (let next = orUnreadable(() => all.next()); !next.done; next = orUnreadable(() => all.next())) yield next.value;
}
