import { crc32 } from "node:zlib";
import { Code } from "@connectrpc/connect";
import type { Config } from "../../config/settings.ts";
import { noNotes } from "../../metrics/notes.ts";
import type { CheckedPoints, CheckedSeries } from "../../receiver/put-points.ts";
import { refusalOf } from "../../wire/status.ts";
import type { Call } from "../integration.ts";
import { copyOf, knownBytes } from "../known-bytes.ts";
import { recentMap } from "../recent-map.ts";
import { factsOf, knownFacts } from "./metric-facts.ts";
import { type Named, type Outcome, outcome } from "./outcome.ts";
import { seriesOfLabels } from "./series-of-labels.ts";
import { scanned, scanSeries } from "./series-scan.ts";
import { orUnreadable, readVersion1, readVersion2, seriesAt, type WrittenSeries } from "./write-request.ts";

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

const rememberedCharactersMax = 64 * 1024 * 1024;
const notFinite = "the value must be finite";

/** Begins without any series. */
export function seriesReader({
  receiverItemsMax,
  entityLabels,
}: Pick<Config, "receiverItemsMax" | "entityLabels">): SeriesReader {
  const named = recentMap<NamedSeries>(rememberedCharactersMax, 1000);
  const scannedBefore = knownBytes<NamedSeries>(rememberedCharactersMax);
  const facts = knownFacts();

  /** A series by its labels; a text: the rule that they break. */
  function seriesOf(tenantId: string, written: WrittenSeries): NamedSeries | string {
    const key = tenantId + written.key;
    let found = named.get(key);
    if (found === undefined) {
      const samples = seriesOfLabels(written.labels(), entityLabels);
      if (typeof samples === "string") return samples;
      found = { samples, factsVersion: -1 };
      named.set(key, found);
    }
    if (written.metadata !== undefined) Object.assign(found.samples, factsOf(written.metadata));
    else if (found.factsVersion !== facts.version()) {
      found.factsVersion = facts.version();
      const { units, description, instrument } = facts.find(tenantId, found.samples.metric) ?? found.samples;
      Object.assign(found.samples, { units, description, instrument });
    }
    return found;
  }

  return {
    async read(bytes, version, { tenantId, nowMs, pace, reserve }) {
      reserve(bytes.byteLength);
      const again = (from: number, to: number) => seriesAt(bytes, from, to);
      const read: ReadRequest = { points: { series: [], times: [], values: [] }, outcome: outcome(again) };
      const now = nowMs();
      let items = 0;
      const count = (more: number) => {
        items += more;
        if (items > receiverItemsMax)
          throw refusalOf(Code.ResourceExhausted, 413, `a request may have at most ${receiverItemsMax} samples`);
      };
      // The same labels of many tenants are no entries of one hash.
      const seed = crc32(tenantId);
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      /** The labels of the series that comes next, and their hash, where it has the usual form and is not known. */
      let fresh: { labels: Uint8Array; hash: number } | undefined;
      const take = (from: number, to: number): boolean => {
        fresh = undefined;
        if (!scanSeries(bytes, view, from, to)) return false;
        const found = scannedBefore.find(tenantId, scanned.hash ^ seed, bytes, from, scanned.labelsEnd);
        if (found === undefined) fresh = { labels: copyOf(bytes, from, scanned.labelsEnd), hash: scanned.hash ^ seed };
        if (found?.factsVersion !== facts.version()) return false;
        count(Math.max(1, scanned.times.length));
        addSamples(read, found.samples, { from, to }, scanned);
        return true;
      };
      for (const item of readable(version === 1 ? readVersion1(bytes, take) : readVersion2(bytes))) {
        const wait = pace();
        if (wait !== undefined) await wait;
        if (item === undefined) continue;
        count("family" in item ? 1 : Math.max(1, item.times.length + item.histograms.length));
        if ("family" in item) {
          if (item.family !== "") facts.learn(tenantId, item.family, factsOf(item), now);
          continue;
        }
        const series = seriesOf(tenantId, item);
        if (fresh !== undefined && typeof series !== "string")
          scannedBefore.set(tenantId, fresh.hash, fresh.labels, series);
        fresh = undefined;
        add(read, series, item);
      }
      return read;
    },
  };
}

/** Adds the samples of a series. */
function addSamples(
  { points, outcome: to }: ReadRequest,
  series: CheckedSeries,
  named: Named,
  { times, values }: { readonly times: readonly number[]; readonly values: readonly number[] },
): void {
  for (let i = 0; i < times.length; i++) {
    const value = values[i] as number;
    // Not a number: the mark of a series that has ended, or what had no value.
    if (Number.isNaN(value)) to.skip("samples");
    else if (!Number.isFinite(value)) to.refuse(named, "samples", notFinite);
    else {
      to.place(named, "samples");
      points.series.push(series);
      points.times.push(times[i] as number);
      points.values.push(value);
    }
  }
}

/** Adds what a request says of one series. */
function add({ points, outcome: to }: ReadRequest, series: NamedSeries | string, written: WrittenSeries): void {
  if (typeof series === "string") {
    to.refuseSeries(written, series);
    return;
  }
  const put = (own: CheckedSeries, timeMs: number, value: number) => {
    points.series.push(own);
    points.times.push(timeMs);
    points.values.push(value);
  };
  addSamples({ points, outcome: to }, series.samples, written, written);
  for (const { timeMs, count, sum } of written.histograms) {
    // A histogram that has ended has a sum that is not a number, and one of values that are not numbers, too.
    if (Number.isNaN(sum)) to.skip("histograms");
    else if (!Number.isFinite(sum) || !Number.isFinite(count)) to.refuse(written, "histograms", notFinite);
    else {
      const { samples } = series;
      series.count ??= suffixed(samples, "_count");
      series.sum ??= suffixed(samples, "_sum");
      to.place(written, "histograms");
      series.count.instrument = series.sum.instrument = samples.instrument;
      put(series.count, timeMs, count);
      to.place(written, undefined);
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
