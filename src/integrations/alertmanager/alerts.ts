import { Code } from "@connectrpc/connect";
import { refusalOf } from "../../wire/status.ts";
import { parseTime } from "./times.ts";

/** An alert as it was sent. Labels and annotations are in the order of their request. */
export interface Alert {
  labels: readonly (readonly [name: string, value: string])[];
  annotations: readonly (readonly [name: string, value: string])[];
  startsAtMs: number | undefined;
  endsAtMs: number | undefined;
  /** The sender's `generatorURL`: any text, usually an address. */
  generatorURL: string;
  /** Webhooks alone have it: `resolved` once it has ended. */
  status: string;
}

/** Pairs of an alert by their names; a value that is `null` is an empty one. */
type SentPairs = Readonly<Record<string, string | null>>;

/** The members of an alert that are read, as they were sent. */
export interface SentMembers {
  labels?: SentPairs | null;
  annotations?: SentPairs | null;
  startsAt?: string | null;
  endsAt?: string | null;
  generatorURL?: string | null;
  status?: string;
}

/** What the schema of Alertmanager's API refuses, in the form of its answers. */
export interface SchemaMistake {
  code: number;
  message: string;
}

/** Code 3 with status 400: what Alertmanager refuses before it looks at any alert. */
export const malformed = (what: string) => refusalOf(Code.InvalidArgument, 400, `parsing alerts body failed: ${what}`);

/** Reads the members of an alert of a list, whose kinds have been checked. `name`: of the alert, for errors. */
export function readAlert(members: SentMembers | null, name: string): Alert | SchemaMistake {
  if (members === null) return { code: 602, message: `${name} in body is required` };
  const { labels = null, annotations = null, startsAt, endsAt, generatorURL, status } = members;
  if (labels === null) return { code: 602, message: `${name}.labels in body is required` };
  return {
    labels: pairs(labels),
    annotations: annotations === null ? [] : pairs(annotations),
    startsAtMs: timeOf(startsAt, `${name}.startsAt`),
    endsAtMs: timeOf(endsAt, `${name}.endsAt`),
    generatorURL: wellFormed(generatorURL),
    status: wellFormed(status),
  };
}

function pairs(value: SentPairs): [string, string][] {
  return Object.entries(value).map(([name, text]) => [name.toWellFormed(), wellFormed(text)]);
}

/** A text; one that holds half a character is made whole. */
const wellFormed = (text: string | null = ""): string => (text ?? "").toWellFormed();

function timeOf(value: string | null | undefined, place: string): number | undefined {
  const ms = parseTime(wellFormed(value));
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
