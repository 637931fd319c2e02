import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { type TimeRange, TimeRangeSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { zone } from "../data/preferences.ts";
import { timeText } from "./time.tsx";
import ui from "./ui.module.css";

/** A time range in an address: how far back from now, as in `6h`, or `<start>-<end>` in ms. */
const lengths = [
  ["15m", "Last 15 minutes", 900_000],
  ["1h", "Last hour", 3_600_000],
  ["6h", "Last 6 hours", 21_600_000],
  ["24h", "Last day", 86_400_000],
  ["7d", "Last week", 604_800_000],
  ["30d", "Last 30 days", 2_592_000_000],
] as const;

/** Its ends, in ms. Undefined: any time, or a text that is none. */
export function endsOf(text: string | null, now = Date.now()): { start: number; end: number } | undefined {
  const length = lengths.find(([name]) => name === text)?.[2];
  if (length !== undefined) return { start: now - length, end: now };
  const [, start, end] = /^(\d{1,15})-(\d{1,15})$/.exec(text ?? "") ?? [];
  return start === undefined || Number(start) >= Number(end) ? undefined : { start: Number(start), end: Number(end) };
}

/** The same as a query takes it; one that leads to now stays open, for what comes. */
export function timeRangeOf(text: string | null): TimeRange | undefined {
  const ends = endsOf(text);
  if (ends === undefined) return undefined;
  const open = !text?.includes("-");
  return create(TimeRangeSchema, { start: BigInt(ends.start), ...(!open && { end: BigInt(ends.end) }) });
}

/** The same as filters of a list take it. */
export function momentsOf(text: string | null): { startTime?: Timestamp; endTime?: Timestamp } {
  const ends = endsOf(text);
  if (ends === undefined) return {};
  const open = !text?.includes("-");
  return { startTime: timestampFromMs(ends.start), ...(!open && { endTime: timestampFromMs(ends.end) }) };
}

interface TimeRangeProps {
  value: string;
  change(value: string): void;
  /** Word for the empty choice. Absent: there is none. */
  any?: string;
}

/** Chooses a time range: one that leads to now, or two moments. */
export function TimeRangeChoice({ value, change, any }: TimeRangeProps) {
  const id = useId();
  const ends = value.includes("-") ? endsOf(value) : undefined;
  const own = useSignal(false);
  return (
    <div class={ui.range}>
      <label class={ui.unseen} for={id}>
        Time range
      </label>
      <select
        id={id}
        value={own.value ? "own" : value}
        onChange={({ currentTarget }) => {
          own.value = currentTarget.value === "own";
          if (!own.value) change(currentTarget.value);
        }}
      >
        {any !== undefined && <option value="">{any}</option>}
        {lengths.map(([name, label]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
        {ends && (
          <option value={value}>
            {timeText(ends.start)} – {timeText(ends.end)}
          </option>
        )}
        <option value="own">Between two moments…</option>
      </select>
      {own.value && (
        <OwnRange
          ends={ends ?? { start: Date.now() - 3_600_000, end: Date.now() }}
          change={(text) => {
            own.value = false;
            change(text);
          }}
        />
      )}
    </div>
  );
}

/** A moment as an input of the page takes it, in the person's zone. */
const inputText = (ms: number) => timeText(ms).slice(0, 16).replace(" ", "T");
const inputMs = (text: string) => Date.parse(zone.value === "UTC" ? `${text}Z` : text);

function OwnRange({ ends, change }: { ends: { start: number; end: number }; change(text: string): void }) {
  const start = useSignal(inputText(ends.start));
  const end = useSignal(inputText(ends.end));
  const [from, to] = [inputMs(start.value), inputMs(end.value)];
  const wrong = !(from < to);
  return (
    <div class={ui.ownRange}>
      <label>
        From
        <input
          type="datetime-local"
          value={start.value}
          onInput={({ currentTarget }) => {
            start.value = currentTarget.value;
          }}
        />
      </label>
      <label>
        to
        <input
          type="datetime-local"
          value={end.value}
          onInput={({ currentTarget }) => {
            end.value = currentTarget.value;
          }}
        />
      </label>
      {wrong && <p class={ui.fieldError}>The first moment must be before the second.</p>}
      <button type="button" disabled={wrong} onClick={() => change(`${from}-${to}`)}>
        Show
      </button>
    </div>
  );
}
