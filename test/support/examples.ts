import { readFileSync, writeFileSync } from "node:fs";
import type { Example } from "../../scripts/transcoding/texts.ts";

/**
 * The examples of the OpenAPI document, run one after the other against a server. They are written as of one moment; what
 * a server gives out (ids, its own times) differs from run to run, and stands for what the example has in its place.
 */

type Json = unknown;

/** The moment that the examples are written as of: 2026-01-01T12:00:00Z. */
const writtenMs = 1_767_268_800_000;
const nearMs = 400 * 86_400_000;
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;
/** What a server gives out: a long word of digits or of letters of both cases. */
const given = /^[A-Za-z0-9_\-=:.]{12,}$/;
const mixed = /\d|[a-z][A-Z]/;
const ids = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[A-Za-z0-9_-]{27}(?:=|%3D)|\b\d{13}\b/g;

/** The files, each after those whose things it uses; what they delete goes last, and in the other order. */
const files = [
  "user-groups",
  "user-accounts",
  "credentials",
  "triggers",
  "destinations",
  "rules",
  "entity-fields",
  "event-fields",
  "metric-entries",
  "data-receiver",
  "entities",
  "custom-properties",
  "custom-property-updaters",
  "maintenance-windows",
  "metrics",
  "events",
  "event-management",
  "event-views",
  "api-clients",
  "audit-log",
  "deliveries",
  "silences",
  "sessions",
];

const pathOf = (name: string) => new URL(`../../proto/examples/${name}.json`, import.meta.url);

export interface Step {
  readonly example: Example;
  /** Keeps another answer in the file. */
  record(answer: Json): void;
}

/** All examples in the order in which they work. */
export function exampleSteps(): Step[] {
  const steps = files.flatMap((name) => {
    const examples: { -readonly [K in keyof Example]: Example[K] }[] = JSON.parse(readFileSync(pathOf(name), "utf8"));
    return examples.map((example) => ({
      example,
      record(answer: Json) {
        example.answer = answer;
        writeFileSync(pathOf(name), `${JSON.stringify(examples, undefined, 2)}\n`);
      },
    }));
  });
  const deletes = ({ example }: Step) => example.rpc.includes("/Delete");
  return [...steps.filter((step) => !deletes(step)), ...steps.filter(deletes).reverse()];
}

/** What stands for what in one run; `same`: texts of the examples and what they are here. */
export function translation(nowMs: number, same: Readonly<Record<string, string>>) {
  // Whole hours, so that buckets of time stay where they are.
  const shiftMs = Math.floor((nowMs - writtenMs) / 3_600_000) * 3_600_000;
  const names = new Map(Object.entries(same));

  /** A text of an example as it is here. */
  function there(text: string): string {
    if (isTime(text, writtenMs)) return moved(text, shiftMs);
    return [...names].reduce((all, [example, here]) => all.replaceAll(example, here), text);
  }

  /** A text of an answer as the example would have it. */
  function back(text: string): string {
    if (isTime(text, nowMs)) return moved(text, -shiftMs);
    const timed = text.replace(/\b\d{13}\b/g, (ms) => (isTime(ms, nowMs) ? moved(ms, -shiftMs) : ms));
    return [...names].reduce((all, [example, here]) => all.replaceAll(here, example), timed);
  }

  /**
   * The answer as the example has it: where both have something that the server gives out, that of the example. So it equals
   * the example's unless anything else differs.
   */
  function told(answer: Json, example: Json): Json {
    if (Array.isArray(answer)) return answer.map((item, i) => told(item, (example as Json[] | undefined)?.[i]));
    if (typeof answer === "object" && answer !== null) {
      const inner = (example ?? {}) as Record<string, Json>;
      return Object.fromEntries(
        Object.entries(answer).map(([key, value]) => [
          key,
          // How many there are may depend on what ships with the service; the time of the day in a zone depends on the hour of the run.
          (key === "totalCount" || localTimes.test(key)) && typeof inner[key] === typeof value
            ? inner[key]
            : told(value, inner[key]),
        ]),
      );
    }
    if (typeof answer !== "string") return answer;
    const translated = back(answer);
    if (typeof example !== "string" || translated === example) return translated;
    if (isTime(translated, writtenMs) && isTime(example, writtenMs)) return example;
    if ([answer, example].every((each) => given.test(each) && mixed.test(each))) {
      names.set(example, answer);
      return example;
    }
    return bare(translated) === bare(example) ? example : translated;
  }

  return {
    /** A request as it is sent here. */
    sent: (value: Json): Json => walk(value, there),
    told,
  };
}

function walk(value: Json, text: (value: string) => string): Json {
  if (Array.isArray(value)) return value.map((item) => walk(item, text));
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, walk(inner, text)]));
  if (typeof value === "number" && isTime(String(value), writtenMs)) return Number(text(String(value)));
  return typeof value === "string" ? text(value) : value;
}

const localTimes = /^local(?:Start|End|Before|After)$/;

/** A longer text without the ids and times in it. */
const bare = (text: string) => text.replace(ids, "…");

function isTime(text: string, aroundMs: number): boolean {
  const ms = /^\d{13}$/.test(text) ? Number(text) : instant.test(text) ? Date.parse(text) : Number.NaN;
  return Math.abs(ms - aroundMs) < nearMs;
}

function moved(text: string, byMs: number): string {
  return /^\d+$/.test(text) ? String(Number(text) + byMs) : new Date(Date.parse(text) + byMs).toISOString();
}
