import { Code } from "@connectrpc/connect";
import type { Config } from "../../config/settings.ts";
import type { Notes } from "../../metrics/notes.ts";
import { noPoints, type ReadPoints } from "../../metrics/point-batch.ts";
import { found, type TenantSeries } from "../../metrics/series-memory.ts";
import { refusalOf } from "../../wire/status.ts";
import type { OperationCall } from "../integration.ts";
import { orUnreadable } from "./message-walk.ts";
import type { KnownFacts } from "./metric-facts.ts";
import { type SeriesNamer, type SeriesPlace, seriesNamer } from "./named-series.ts";
import { type Outcome, outcome } from "./outcome.ts";
import { scanned, scanSeries } from "./series-scan.ts";
import type { WrittenSeries } from "./series-walk.ts";
import { symbolsOf } from "./symbols.ts";
import { version1 } from "./version1.ts";
import { version2 } from "./version2.ts";
import type { WriteRequest } from "./write-request.ts";

/** What a request holds, read whole before anything of it is stored. */
export interface ReadRequest {
  points: ReadPoints;
  outcome: Outcome;
}

/** Reads requests, and remembers the series that they name. */
export interface SeriesReader {
  /** @throws Unreadable; code 8 where a request holds too much */
  read(bytes: Uint8Array, version: 1 | 2, call: OperationCall): Promise<ReadRequest>;
}

/** Memory of a sample until it is answered, and for how many of them it is reserved at once. */
const [sampleBytes, reservedAtOnce] = [48, 1000];
const notFinite = "the value must be finite";

/** @param knownOf finds what is known of a tenant's series; `facts`: what senders of version 1 say of metrics */
export function seriesReader(
  { receiverItemsMax, entityLabels }: Pick<Config, "receiverItemsMax" | "entityLabels">,
  knownOf: (tenantId: string) => TenantSeries,
  facts: KnownFacts,
): SeriesReader {
  return {
    async read(bytes, version, call) {
      const { tenantId, pace, reserve } = call;
      reserve(bytes.byteLength);
      const nowMs = call.nowMs();
      const count = counter(receiverItemsMax, reserve);
      if (version === 1) await facts.refresh(tenantId, nowMs);
      const learned = new Map<string, Readonly<Notes>>();
      const known = knownOf(tenantId);
      const namer = seriesNamer({ version, tenantId, known, facts, entityLabels, nowMs, reserve });
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const take = (from: number, to: number, at: number): boolean => {
        if (!scanSeries(bytes, view, from, to) || !namer.find()) return false;
        count(Math.max(1, scanned.times.length));
        addSamples(read, { series: found.segment, entry: found.entry }, at, scanned);
        return true;
      };
      const request = version === 1 ? version1(bytes, take) : version2(bytes, symbolsOf(bytes, { known, reserve }));
      const read: ReadRequest = { points: noPoints(), outcome: outcome((at) => request.shownAt(at)) };
      for (const item of readable(request.items())) {
        const wait = pace();
        if (wait !== undefined) await wait;
        if (item === undefined) continue;
        if ("family" in item) {
          count(1);
          const { family, facts: said } = item;
          if (family !== "" && facts.learn(tenantId, family, said, nowMs)) learned.set(family, said);
          continue;
        }
        orUnreadable(() => add(read, namer, request, item, count));
      }
      if (learned.size > 0) await facts.store(tenantId, learned, nowMs);
      return read;
    },
  };
}

/** Counts samples, and reserves memory for them. @throws code 8 for too many, and when there is no room */
function counter(itemsMax: number, reserve: OperationCall["reserve"]): (more: number) => void {
  let [items, reserved] = [0, 0];
  return (more) => {
    items += more;
    if (items > itemsMax)
      throw refusalOf(Code.ResourceExhausted, 413, `a request may have at most ${itemsMax} samples`);
    for (; reserved < items; reserved += reservedAtOnce) reserve(reservedAtOnce * sampleBytes);
  };
}

/** Adds the samples of a series. @param at the place of its length in the request */
function addSamples(
  { points, outcome: to }: ReadRequest,
  place: SeriesPlace,
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
      put(points, place, times[i] as number, value);
    }
  }
}

function put(points: ReadPoints, { series, entry }: SeriesPlace, timeMs: number, value: number): void {
  points.series.push(series);
  points.entries.push(entry);
  points.times.push(timeMs);
  points.values.push(value);
}

/** Adds what a request says of one series. @throws Unreadable, code 8 */
function add(
  read: ReadRequest,
  namer: SeriesNamer,
  request: WriteRequest,
  written: WrittenSeries,
  count: (items: number) => void,
): void {
  const { points, outcome: to } = read;
  const { at, times, histograms } = written;
  const isHistogram = histograms.length > 0;
  const places = [
    isHistogram && times.length === 0 ? undefined : namer.place(request, written, 0),
    isHistogram ? namer.place(request, written, 1) : undefined,
    isHistogram ? namer.place(request, written, 2) : undefined,
  ];
  const rule = places.find((each) => typeof each === "string");
  count(rule === undefined ? Math.max(1, times.length + histograms.length) : 1);
  if (rule !== undefined) {
    to.refuse(at, "samples", rule, times.length);
    to.refuse(at, "histograms", rule, histograms.length);
    return;
  }
  const [samples, counts, sums] = places as SeriesPlace[];
  addSamples(read, samples as SeriesPlace, at, written);
  for (const { timeMs, count: values, sum } of histograms) {
    // A histogram that has ended has a sum that is not a number, and one of values that are not numbers, too.
    if (Number.isNaN(sum)) to.skip("histograms");
    else if (!Number.isFinite(sum) || !Number.isFinite(values)) to.refuse(at, "histograms", notFinite);
    else {
      to.place(at, "histograms");
      put(points, counts as SeriesPlace, timeMs, values);
      to.place(at, undefined);
      put(points, sums as SeriesPlace, timeMs, sum);
    }
  }
}

/** Each item, or what is wrong with the bytes. */
function* readable<T>(items: Iterable<T>): Generator<T> {
  const all = items[Symbol.iterator]();
  for (let next = orUnreadable(() => all.next()); !next.done; next = orUnreadable(() => all.next())) yield next.value;
}
