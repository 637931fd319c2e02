import { Code } from "@connectrpc/connect";
import type { Config } from "../../config/settings.ts";
import type { EventItem } from "../../events/ingest.ts";
import type { LaneKind } from "../../receiver/ingest-queue.ts";
import { timesTaken } from "../../receiver/item.ts";
import { putItems } from "../../receiver/put-items.ts";
import { bodyText } from "../../transcoding/body.ts";
import { finishScan, isJsonError, type Scan, scanOf } from "../../transcoding/json/scan.ts";
import { refusalOf } from "../../wire/status.ts";
import type { OperationCall } from "../integration.ts";
import { type Alert, brokenAlert, readAlert, type SchemaMistake } from "./alerts.ts";
import { type AlertTimes, eventOfAlert } from "./event-of-alert.ts";
import type { AlertList, SentAlert } from "./sent-alerts.ts";

const jsonType = /^application\/json[ \t]*(?:;.*)?$/i;

/** Code 3 with status 415 for a body that is not said to be JSON. */
export function checkJsonType(type = ""): void {
  if (jsonType.test(type.trim())) return;
  const shown = JSON.stringify(type.slice(0, 100));
  throw refusalOf(Code.InvalidArgument, 415, `unsupported media type ${shown}, only [application/json] are allowed`);
}

/** Where alerts go, and what becomes of their labels. */
export interface AlertStore {
  config: Pick<Config, "eventRetentionSec" | "entityLabels">;
  lane: LaneKind<EventItem>;
  /** How many alerts a request may have. */
  alertsMax: number;
}

/** A form in which requests hold alerts. */
export interface AlertForm extends Omit<AlertList, "alertsMax"> {
  /** Finds the alerts of a text, from its beginning, as `alertsIn` does. */
  alerts(s: Scan, list: AlertList): Generator<SentAlert | undefined, void>;
  /** When an alert fires, by what its request says and the time now. */
  timesOf(alert: Alert, nowMs: number): AlertTimes;
  /** What the text is called in the error that says that it is no JSON. */
  noJson(): Error;
}

/** Why alerts of a request were not stored: the first ones, and how many there are. */
export interface Mistakes {
  /** The first that breaks the schema of Alertmanager's API. */
  schema?: SchemaMistake;
  texts: string[];
  count: number;
}

const listedMax = 10;
/** Shorter texts are read at once. */
const longText = 16 * 1024;
/** Memory that the event of an alert takes beside its texts, about. */
const eventBytes = 1024;

/**
 * Reads the alerts of a body, all of them before any is stored, and stores those that are good. A time that is older than the
 * receiver takes, or ahead of now, is moved to where it is taken. May be repeated.
 * @throws what `form` makes of a text that is none of its requests; then nothing is stored
 */
export async function storeAlerts(
  { config, lane, alertsMax }: AlertStore,
  body: Buffer,
  form: AlertForm,
  call: OperationCall,
): Promise<Mistakes> {
  const nowMs = Math.floor(call.nowMs());
  const [oldestMs] = timesTaken({ ageSecMax: config.eventRetentionSec, aheadSecMax: 0 }, nowMs);
  const mistakes: Mistakes = { texts: [], count: 0 };
  const items: EventItem[] = [];

  /** The event of an alert, or why it is refused. */
  function itemOf(sent: SentAlert): EventItem | SchemaMistake | string {
    if ("error" in sent) return sent.error;
    call.reserve(eventBytes + 2 * sent.bytes);
    const alert = readAlert(sent.members, form.nameOf(sent.place));
    if ("message" in alert) return alert;
    const mistake = brokenAlert(alert);
    if (mistake !== undefined) return mistake;
    const times = form.timesOf(alert, nowMs);
    const timeMs = Math.floor(Math.min(nowMs, Math.max(oldestMs, times.timeMs)));
    return eventOfAlert(alert, { ...times, timeMs }, config.entityLabels);
  }

  await eachAlert(body, { ...form, alertsMax }, call, (sent) => {
    const item = itemOf(sent);
    if (typeof item === "object" && "dimensions" in item) {
      items.push(item);
      return;
    }
    if (typeof item === "object") mistakes.schema ??= item;
    refuse(mistakes, typeof item === "object" ? item.message : item);
  });
  const left = await putItems(lane, call.sender, items, body.length);
  for (const reason of left.values()) refuse(mistakes, reason);
  call.count("stored", items.length - left.size);
  call.count("refused", mistakes.count);
  return mistakes;
}

function refuse(mistakes: Mistakes, text: string): void {
  mistakes.count += 1;
  if (mistakes.texts.length < listedMax) mistakes.texts.push(text);
}

async function eachAlert(
  body: Buffer,
  form: AlertForm & AlertList,
  { reserve, pace }: OperationCall,
  take: (sent: SentAlert) => void,
): Promise<void> {
  const text = bodyText(body);
  // The text, and its characters as numbers.
  reserve(text.length * (text.length === body.length ? 2 : 4));
  const s = scanOf(text, { bytes: body });
  try {
    for (const sent of form.alerts(s, form)) {
      if (sent !== undefined) take(sent);
      const wait = text.length < longText ? undefined : pace();
      if (wait !== undefined) await wait;
    }
    finishScan(s);
  } catch (error) {
    throw isJsonError(error) ? form.noJson() : error;
  }
}

/** The first mistakes in one text, and how many more there are. */
export function mistakesText({ texts, count }: Mistakes): string {
  const more = count - texts.length;
  return [...texts, ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}
