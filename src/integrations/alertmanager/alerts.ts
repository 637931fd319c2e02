import { Code } from "@connectrpc/connect";
import type { Pace } from "../../event-loop.ts";
import { refusalOf } from "../../wire/status.ts";
import { parseTime } from "./times.ts";

/** An alert as it was sent. Labels and annotations are in the order of their request. */
export interface Alert {
  labels: readonly (readonly [name: string, value: string])[];
  annotations: readonly (readonly [name: string, value: string])[];
  startsAtMs: number | undefined;
  endsAtMs: number | undefined;
  generatorURL: string;
}

/** What the schema of Alertmanager's API refuses, in the form of its answers. */
export interface SchemaMistake {
  code: number;
  message: string;
}

/** Texts longer than this are divided into the values of their list, which are read in slices. */
const longText = 256 * 1024;

/** A JSON list, value by value; undefined for `null`. @throws 400 for what is none */
export async function* listItems(body: string, pace: Pace): AsyncIterable<unknown> {
  const text = body.trim();
  if (text.length <= longText) {
    const list = parsed(text);
    if (list === null) return;
    if (!Array.isArray(list)) throw malformed(`cannot unmarshal ${kindOf(list)} into a list`);
    yield* list;
    return;
  }
  for await (const part of divided(text, pace)) {
    const wait = pace();
    if (wait !== undefined) await wait;
    yield parsed(part);
  }
}

/** The texts of the values of a list, found by its commas. That they are JSON is left to their reader. */
async function* divided(text: string, pace: Pace): AsyncIterable<string> {
  let at = /\S/.exec(text)?.index ?? text.length;
  if (text[at] !== "[") throw malformed("cannot unmarshal what is no list into a list");
  let from = ++at;
  let depth = 1;
  for (let count = 0; depth > 0; at++, count++) {
    if (count % longText === longText - 1) await pace();
    const c = text.charCodeAt(at);
    if (Number.isNaN(c)) throw malformed("unexpected end of JSON input");
    if (c === 34) at = endOfString(text, at);
    else if (c === 91 || c === 123) depth += 1;
    else if (c === 93 || c === 125) depth -= 1;
    if (depth > 1 || (depth === 1 && c !== 44)) continue;
    const part = text.slice(from, at);
    // An empty list has no value, and nothing else may be empty.
    if (depth > 0 || from > 1 || /\S/.test(part)) yield part;
    from = at + 1;
  }
  if (/\S/.test(text.slice(at))) throw malformed("there is text after the list");
}

function endOfString(text: string, from: number): number {
  for (let at = from + 1; ; at++) {
    const end = text.indexOf('"', at);
    if (end < 0) throw malformed("unexpected end of JSON input");
    let back = end;
    while (text.charCodeAt(back - 1) === 92) back -= 1;
    if ((end - back) % 2 === 0) return end;
    at = end;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed("invalid JSON");
  }
}

/** Code 3 with status 400: what Alertmanager refuses before it looks at any alert. */
export const malformed = (what: string) => refusalOf(Code.InvalidArgument, 400, `parsing alerts body failed: ${what}`);

const kindOf = (value: unknown) =>
  value === null ? "null" : Array.isArray(value) ? "array" : typeof value === "object" ? "object" : typeof value;

/** Reads one alert of a list. A wrong type is code 3, as in Alertmanager, whose decoder then gives up the request. */
export function readAlert(value: unknown, place: string): Alert | SchemaMistake {
  if (value === null) return { code: 602, message: `${place} in body is required` };
  if (typeof value !== "object" || Array.isArray(value))
    throw malformed(`cannot unmarshal ${kindOf(value)} into ${place}`);
  const sent = value as Record<string, unknown>;
  const labels = sent.labels ?? undefined;
  if (labels === undefined) return { code: 602, message: `${place}.labels in body is required` };
  const generatorURL = textOf(sent.generatorURL, `${place}.generatorURL`);
  if (generatorURL !== "" && !generatorURL.startsWith("/") && !URL.canParse(generatorURL)) {
    const quoted = JSON.stringify(generatorURL.slice(0, 200));
    return { code: 601, message: `${place}.generatorURL in body must be of type uri: ${quoted}` };
  }
  return {
    labels: pairs(labels, `${place}.labels`),
    annotations: pairs(sent.annotations ?? {}, `${place}.annotations`),
    startsAtMs: timeOf(sent.startsAt, `${place}.startsAt`),
    endsAtMs: timeOf(sent.endsAt, `${place}.endsAt`),
    generatorURL,
  };
}

function pairs(value: unknown, place: string): [string, string][] {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw malformed(`cannot unmarshal ${kindOf(value)} into ${place}`);
  return Object.entries(value).map(([name, text]) => [name.toWellFormed(), textOf(text, `${place} of type string`)]);
}

function textOf(value: unknown, place: string): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw malformed(`cannot unmarshal ${kindOf(value)} into ${place}`);
  return value.toWellFormed();
}

function timeOf(value: unknown, place: string): number | undefined {
  const ms = parseTime(textOf(value, place));
  if (ms === null) throw malformed(`${place} is no time in RFC 3339`);
  return ms;
}

/** Why Alertmanager does not take an alert, in its words; undefined when it does. Empty labels do not count. */
export function brokenAlert({ labels, annotations, startsAtMs, endsAtMs }: Alert): string | undefined {
  if (startsAtMs !== undefined && endsAtMs !== undefined && startsAtMs > endsAtMs)
    return "start time must be before end time";
  const named = labels.filter(([, value]) => value !== "");
  if (named.length === 0) return "at least one label pair required";
  if (named.some(([name]) => name === "")) return 'invalid label set: invalid name ""';
  return annotations.some(([name]) => name === "") ? 'invalid annotations: invalid name ""' : undefined;
}
