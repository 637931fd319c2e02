import { codePoints, matcherText } from "../../clause/label-matcher.ts";
import type { SchemaMistake } from "./alerts.ts";
import { parseTime } from "./times.ts";

/** A silence as Alertmanager's tools send it. */
export interface SentSilence {
  /** Empty: a new one. */
  readonly id: string;
  /** As `matcherText` writes them. */
  readonly matchers: readonly string[];
  readonly startsMs: number;
  readonly endsMs: number;
  readonly createdBy: string;
  readonly comment: string;
}

const msMax = 253_402_300_799_999;
const matchersMax = 50;
const commentCharactersMax = 1024;
const authorCharactersMax = 255;

const required = (what: string): SchemaMistake => ({ code: 602, message: `${what} in body is required` });

/** Reads a silence. Returns a text for what Alertmanager answers as one, and else the mistake in the schema. */
export function readSentSilence(text: string): SentSilence | SchemaMistake | string {
  const body = parsed(text);
  if (typeof body !== "object" || body === null || Array.isArray(body)) return malformedBody;
  const { id = "", matchers, startsAt, endsAt, createdBy, comment } = body as Record<string, unknown>;
  if (!isTextOrNone(id) || !isTextOrNone(createdBy) || !isTextOrNone(comment)) return malformedBody;
  const [startsMs, endsMs] = [timeOf(startsAt), timeOf(endsAt)];
  if (startsMs === null || endsMs === null) return malformedBody;
  if (startsAt == null) return required("startsAt");
  if (endsAt == null) return required("endsAt");
  if (createdBy == null) return required("createdBy");
  if (!Array.isArray(matchers) || matchers.length === 0) return "at least one matcher required";
  if (matchers.length > matchersMax) return `a silence has at most ${matchersMax} matchers`;
  const texts: string[] = [];
  for (const [i, matcher] of matchers.entries()) {
    const read = matcherOf(matcher, `matchers.${i}`);
    if (typeof read !== "string") return read;
    texts.push(read);
  }
  if (!comment) return "a comment is required";
  if (codePoints(comment) > commentCharactersMax) return `a comment has at most ${commentCharactersMax} characters`;
  if (codePoints(createdBy) > authorCharactersMax) return `createdBy has at most ${authorCharactersMax} characters`;
  const all = [...texts, comment, createdBy];
  if (all.some((each) => each.includes("\0"))) return "no text may hold the character U+0000";
  return {
    id: id ?? "",
    matchers: texts,
    startsMs: startsMs ?? 0,
    endsMs: Math.min(endsMs ?? 0, msMax),
    createdBy: createdBy.toWellFormed(),
    comment: comment.toWellFormed(),
  };
}

const malformedBody: SchemaMistake = {
  code: 400,
  message: "parsing silence body failed: it must be an object of Alertmanager's API",
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isTextOrNone = (value: unknown): value is string | null | undefined =>
  value === null || value === undefined || typeof value === "string";

/** A time in ms; undefined for none and for the zero time, null for what is no time. */
function timeOf(value: unknown): number | undefined | null {
  if (value === undefined || value === null) return undefined;
  return typeof value === "string" && value !== "" ? parseTime(value) : null;
}

function matcherOf(value: unknown, place: string): string | SchemaMistake {
  if (typeof value !== "object" || value === null) return malformedBody;
  const { name, value: text, isRegex, isEqual: equal } = value as Record<string, unknown>;
  const isEqual = equal ?? true;
  for (const [member, each] of Object.entries({ name, value: text, isRegex }))
    if (each === undefined || each === null) return required(`${place}.${member}`);
  if (typeof name !== "string" || typeof text !== "string") return malformedBody;
  if (typeof isRegex !== "boolean" || typeof isEqual !== "boolean") return malformedBody;
  const operator = isRegex ? (isEqual ? "=~" : "!~") : isEqual ? "=" : "!=";
  return matcherText({ name: name.toWellFormed(), operator, value: text.toWellFormed() });
}
