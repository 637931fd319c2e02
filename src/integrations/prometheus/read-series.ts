import { crc32 } from "node:zlib";
import { Code } from "@connectrpc/connect";
import type { Config } from "../../config/settings.ts";
import { type NewSeries, noPoints, type ReadPoints } from "../../metrics/point-batch.ts";
import { refusalOf } from "../../wire/status.ts";
import type { Call } from "../integration.ts";
import { orUnreadable } from "./message-walk.ts";
import { type NamedSeries, type Namer, namedSeriesMemory, suffixed } from "./named-series.ts";
import { type Outcome, outcome } from "./outcome.ts";
import { scanned, scanSeries } from "./series-scan.ts";
import type { WrittenSeries } from "./series-walk.ts";
import { symbolNumbers } from "./symbol-numbers.ts";
import { symbolsOf } from "./symbols.ts";
import { version1 } from "./version1.ts";
import { version2 } from "./version2.ts";
import { wholeOf } from "./write-request.ts";

/** What a request holds, read whole before anything of it is stored. */
export interface ReadRequest {
  points: ReadPoints;
  outcome: Outcome;
}

/** Reads requests, and remembers the series that they name. */
export interface SeriesReader {
  /** @throws Unreadable; code 8 where a request holds too much */
  read(bytes: Uint8Array, version: 1 | 2, call: Call): Promise<ReadRequest>;
}

/** Bytes of labels of new series: a request of version 2 may name one symbol again and again. */
const newBytesMax = 4 * 1024 * 1024;
/** Memory of a sample until it is answered, and for how many of them it is reserved at once. */
const [sampleBytes, reservedAtOnce] = [48, 1000];
const notFinite = "the value must be finite";

/** Begins without any series. */
export function seriesReader({
  receiverItemsMax,
  entityLabels,
}: Pick<Config, "receiverItemsMax" | "entityLabels">): SeriesReader {
  const named = namedSeriesMemory(entityLabels);
  const symbolNumber = symbolNumbers();

  return {
    async read(bytes, version, call) {
      const { tenantId, pace, reserve } = call;
      reserve(bytes.byteLength);
      const now = call.nowMs();
      const count = counter(receiverItemsMax, reserve);
      const namer = namerOf(call, version);
      const { view } = wholeOf(bytes);
      const take = (from: number, to: number, at: number): boolean => {
        if (!scanSeries(bytes, view, from, to)) return false;
        const found = named.find(namer, scanned.hash, bytes, from, scanned.labelsEnd);
        if (found === undefined) return false;
        count(Math.max(1, scanned.times.length));
        addSamples(read, found.samples, at, scanned);
        return true;
      };
      const request =
        version === 1
          ? version1(bytes, take)
          : version2(bytes, symbolsOf(bytes, { numbers: symbolNumber, owner: namer, reserve }));
      const read: ReadRequest = {
        points: noPoints(),
        outcome: outcome((at) => request.shownAt(at)),
      };
      for (const item of readable(request.items())) {
        const wait = pace();
        if (wait !== undefined) await wait;
        if (item === undefined) continue;
        if ("family" in item) {
          count(1);
          named.learn(tenantId, item, now);
          continue;
        }
        const series = orUnreadable(() => named.seriesOf(namer, request, item));
        count(typeof series === "string" ? 1 : Math.max(1, item.times.length + item.histograms.length));
        add(read, series, item);
      }
      return read;
    },
  };
}

/** Counts samples, and reserves memory for them. @throws code 8 for too many, and when there is no room */
function counter(itemsMax: number, reserve: Call["reserve"]): (more: number) => void {
  let [items, reserved] = [0, 0];
  return (more) => {
    items += more;
    if (items > itemsMax)
      throw refusalOf(Code.ResourceExhausted, 413, `a request may have at most ${itemsMax} samples`);
    for (; reserved < items; reserved += reservedAtOnce) reserve(reservedAtOnce * sampleBytes);
  };
}

function namerOf({ tenantId, reserve }: Call, version: 1 | 2): Namer {
  let newBytes = 0;
  return {
    tenantId,
    reserve,
    // Keys of both versions may have the same bytes. The same keys of many tenants are no entries of one hash.
    owner: `${tenantId} ${version}`,
    seed: crc32(tenantId),
    brokenSize(labelBytes) {
      newBytes += labelBytes;
      if (version === 1 || newBytes <= newBytesMax) return undefined;
      return `the labels of new series in a request may have at most ${newBytesMax} bytes`;
    },
  };
}

/** Adds the samples of a series. @param at the place of its length in the request */
function addSamples(
  { points, outcome: to }: ReadRequest,
  series: NewSeries,
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
      points.entries.push(0);
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
  const put = (own: NewSeries, timeMs: number, value: number) => {
    points.series.push(own);
    points.entries.push(0);
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

/** Each item, or what is wrong with the bytes. */
function* readable<T>(items: Iterable<T>): Generator<T> {
  const all = items[Symbol.iterator]();
  for (let next = orUnreadable(() => all.next()); !next.done; next = orUnreadable(() => all.next())) yield next.value;
}
