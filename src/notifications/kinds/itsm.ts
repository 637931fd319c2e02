import { createHash } from "node:crypto";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import type { ItsmDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Broken } from "../../rpc/constraint-rules.ts";
import type { Notification } from "../subject/notification.ts";
import { plainText, visible } from "../templates/markup.ts";
import { cutCharacters, cutText } from "../templates/template.ts";
import { calledOf, withoutBreaks } from "../templates/titles.ts";
import { hasMembers } from "../templates/variables.ts";
import { NoToken } from "./access-tokens.ts";
import {
  type AttemptOutcome,
  isSuccess,
  notSent,
  parsedObject,
  refusedOutcome,
  sent,
  type ThreadState,
  told,
} from "./attempt-outcome.ts";
import { brokenUrl } from "./checks.ts";
import { allFactsOf, bodyOf, defaultMessage, firstLine, linksOf, occasionText } from "./default-texts.ts";
import type { DestinationKind, Rendered, Sending, TryEnvironment } from "./kind.ts";
import { OutboundError, type OutboundResponse } from "./outbound.ts";

const shortCharsMax = 160;
const longCharsMax = 4000;
/** Leaves room for what is known, and for the links. */
const messageCharsMax = 2000;
const factsCharsMax = 1200;
const linksCharsMax = 1500;
const valueCharsMax = 200;
const breaks = "\n\n";
const correlationCharsMax = 100;
const resolved = 6;

/** Impact and urgency, of which the system makes the priority: 1 is high. */
const weights: Readonly<Record<number, string>> = { [Severity.CRITICAL]: "1", [Severity.ERROR]: "2" };

/** Never empty: an empty one would match every incident that has none. No sign of the query's own. */
function correlationOf({ subjectId, match }: Notification): string {
  const text = match === undefined ? subjectId : `${subjectId}:${match}`;
  const plain = /^[\w:=.-]+$/.test(text) && text.length <= correlationCharsMax;
  return plain ? text : createHash("sha256").update(text).digest("hex");
}

const cut = (text: string, max: number) => (max < 1 ? "" : cutCharacters(text.trim(), max));

/** As many lines as fit. */
function fitting(lines: readonly string[], charsMax: number): string {
  let text = "";
  for (const line of lines.map(visible)) {
    const next = text === "" ? line : `${text}\n${line}`;
    if ([...next].length > charsMax) break;
    text = next;
  }
  return text;
}

function factLines(notification: Notification): string[] {
  const { event, entity } = notification;
  const isGroup = hasMembers(notification);
  const facts = [
    ...(isGroup ? [] : [{ title: "Entity", value: calledOf(entity) }]),
    ...(isGroup || event === undefined ? [] : [{ title: "Event", value: event.name }]),
    ...allFactsOf(notification),
  ];
  return facts.map(({ title, value }) => withoutBreaks(`${title}: ${cutText(value, valueCharsMax)}`));
}

function descriptionOf({ notification, texts }: Rendered<ItsmDestination>, publicUrl: string): string {
  const links = fitting(
    linksOf(notification, publicUrl).map(({ text, url }) => `${text}: ${url}`),
    linksCharsMax,
  );
  const facts = fitting(factLines(notification), factsCharsMax);
  // What is at the end is known to fit: what is too long is the message, or the event's own text.
  const body = notification.rule.message === "" ? visible(bodyOf(notification)) : "";
  const left = longCharsMax - [...facts, ...links].length - breaks.length * (body === "" ? 2 : 3);
  const message = cut(visible(texts.message ?? ""), left);
  const parts = [message, cut(body, left - [...message].length), facts, links];
  return parts.filter((part) => part.trim() !== "").join(breaks);
}

/** What every notification sets. */
function commonFields({ notification, texts }: Rendered<ItsmDestination>) {
  const weight = weights[notification.event?.severity ?? Severity.ERROR] ?? "3";
  const said = [texts.shortDescription, firstLine(notification, texts.message ?? "")].find((text) => text?.trim());
  return {
    // Instances refuse a record without one.
    short_description: cut(withoutBreaks(said ?? notification.rule.name), shortCharsMax),
    ...(!notification.clear && { impact: weight, urgency: weight }),
  };
}

function created(rendered: Rendered<ItsmDestination>, publicUrl: string) {
  return {
    ...commonFields(rendered),
    description: descriptionOf(rendered, publicUrl),
    correlation_id: correlationOf(rendered.notification),
    correlation_display: "Belfry",
  };
}

function changed(rendered: Rendered<ItsmDestination>) {
  const { destination, notification, texts } = rendered;
  const occasion = occasionText(notification);
  const notes = cut([occasion, texts.message].filter((text) => text).join(": "), longCharsMax);
  const fields = { ...commonFields(rendered), work_notes: notes };
  if (!notification.clear) return fields;
  return {
    ...fields,
    state: String(destination.closeState || resolved),
    close_notes: cut(texts.closeNotes || notes, longCharsMax),
    // The texts that are allowed differ by instance: none is better than a wrong one.
    ...(destination.closeCode !== "" && { close_code: destination.closeCode }),
  };
}

/** The requests of one try, signed in. */
interface Session {
  ask(method: "GET" | "POST" | "PATCH", path: string, body?: object): Promise<OutboundResponse>;
}

function session(
  { destination, signal }: Sending<ItsmDestination>,
  { outbound, accessTokens, signIn }: TryEnvironment,
): Session {
  const { authorization, baseUrl } = destination;
  const oauth = authorization.case === "oauth" ? authorization.value : undefined;
  const ask = (authorizationHeader: string, method: "GET" | "POST" | "PATCH", path: string, body?: object) =>
    outbound.guarded({
      method,
      url: `${baseUrl.replace(/\/+$/, "")}/api/now/table/incident${path}`,
      headers: {
        authorization: authorizationHeader,
        accept: "application/json",
        ...(body && { "content-type": "application/json; charset=utf-8" }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal,
    });
  if (oauth === undefined) {
    const { username = "", password = "" } = authorization.case === "basic" ? authorization.value : {};
    const basic = Buffer.from(`${username}:${password}`).toString("base64");
    signIn.hide(basic);
    return { ask: (...what) => ask(`Basic ${basic}`, ...what) };
  }
  const grant = { ...signIn, oauth, baseUrl, signal };
  return {
    async ask(...what) {
      const token = await accessTokens.get(grant);
      const answer = await ask(`Bearer ${token}`, ...what);
      if (answer.status !== 401) return answer;
      accessTokens.drop(grant, token);
      return ask(`Bearer ${await accessTokens.get(grant)}`, ...what);
    },
  };
}

/** The `result` of an answer; undefined when there is none: an instance that sleeps answers 200 with a page. */
function resultOf<T>(answer: OutboundResponse): T | undefined {
  return isSuccess(answer) ? (parsedObject(answer.body)?.result as T | undefined) : undefined;
}

const failure = (answer: OutboundResponse, state: ThreadState, nowMs: number): AttemptOutcome =>
  isSuccess(answer) ? notSent("itsm", "unreadable", told(answer), state) : refusedOutcome("itsm", answer, state, nowMs);

interface Row {
  sys_id?: unknown;
  number?: unknown;
}

const stateOf = ({ sys_id, number }: Row): ThreadState => ({ sysId: String(sys_id), number: String(number ?? "") });

/** The record that was made for this match before, by a try whose end was not recorded: it broke, or the server died. */
async function find(itsm: Session, { notification }: Rendered<ItsmDestination>): Promise<OutboundResponse> {
  const query = encodeURIComponent(`correlation_id=${correlationOf(notification)}^ORDERBYDESCsys_created_on`);
  return itsm.ask("GET", `?sysparm_query=${query}&sysparm_limit=1&sysparm_fields=sys_id,number`);
}

async function put(
  sending: Sending<ItsmDestination>,
  world: TryEnvironment,
  keep: (state: ThreadState) => void,
): Promise<AttemptOutcome> {
  const itsm = session(sending, world);
  const { notification } = sending;
  let { state } = sending;
  if (state.sysId !== undefined) {
    const answer = await itsm.ask("PATCH", `/${encodeURIComponent(state.sysId)}`, changed(sending));
    if (resultOf(answer) !== undefined) return sent(`updated ${state.number}`, state);
    if (answer.status !== 404) return failure(answer, state, world.nowMs());
    state = {}; // the record is gone
    keep(state);
  }
  const found = await find(itsm, sending);
  const rows = resultOf<Row[]>(found);
  if (!Array.isArray(rows)) return failure(found, state, world.nowMs());
  if (rows[0]?.sys_id !== undefined) {
    state = stateOf(rows[0]);
    keep(state);
    const answer = await itsm.ask("PATCH", `/${encodeURIComponent(String(state.sysId))}`, changed(sending));
    return resultOf(answer) === undefined
      ? failure(answer, state, world.nowMs())
      : sent(`updated ${state.number}`, state);
  }
  if (notification.clear) return sent("there is no record to close", state);
  const answer = await itsm.ask("POST", "", created(sending, world.publicUrl));
  const row = resultOf<Row>(answer);
  if (row?.sys_id === undefined) return failure(answer, state, world.nowMs());
  return sent(`created ${String(row.number ?? "")}`, stateOf(row));
}

function checkAuthorization({ authorization, credentialId }: ItsmDestination): Broken[] {
  if (authorization.case === undefined && credentialId === "") {
    return [{ path: "basic", rule: "must be given, or else oauth or credentialId" }];
  }
  if (authorization.case !== "oauth") return [];
  const { tokenUrl, authUrl } = authorization.value;
  return [...brokenUrl("oauth.tokenUrl", tokenUrl), ...brokenUrl("oauth.authUrl", authUrl)];
}

/** The Table API: one incident a match, which is found again by its correlation id. */
export const itsm: DestinationKind<ItsmDestination> = {
  joint: true,

  place: ({ baseUrl }) => baseUrl,

  templates: ({ shortDescription, closeNotes }, message) => ({
    shortDescription: { text: shortDescription, markup: plainText },
    closeNotes: { text: closeNotes, markup: plainText },
    message: { text: message || defaultMessage, markup: plainText, fitting: messageCharsMax },
  }),

  check: (destination) => [
    ...brokenUrl("baseUrl", destination.baseUrl),
    ...checkAuthorization(destination),
    ...(destination.closeState < 0 ? [{ path: "closeState", rule: "must not be negative" }] : []),
  ],

  compose: (rendered, { publicUrl }) => ({
    subject: commonFields(rendered).short_description,
    body: descriptionOf(rendered, publicUrl),
  }),

  async send(sending, world) {
    let { state } = sending;
    try {
      return await put(sending, world, (next) => {
        state = next;
      });
    } catch (error) {
      if (error instanceof NoToken || error instanceof OutboundError) {
        return notSent("itsm", error.reason, error.message, state);
      }
      throw error;
    }
  },
};
