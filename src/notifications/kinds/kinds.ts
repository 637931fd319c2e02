import type { DescMessage, Message } from "@bufbuild/protobuf";
import { type DestinationType, DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { paced, type Pace as Turns } from "../../event-loop.ts";
import { type Broken, fieldPath } from "../../rpc/constraint-rules.ts";
import type { Notification } from "../subject/notification.ts";
import { templateVariables } from "../templates/alerts.ts";
import {
  checkedTemplate,
  goTag,
  newSteps,
  parseTemplate,
  type RenderSteps,
  render,
  TemplateError,
  tooManyRenderSteps,
} from "../templates/template.ts";
import { type Described, hasMembers, linesMax } from "../templates/variables.ts";
import type { SignIn } from "./access-tokens.ts";
import { type AttemptOutcome, notSent, type Recipient, type ThreadState } from "./attempt-outcome.ts";
import { groupMessage, summaryMessage } from "./default-texts.ts";
import { email } from "./email.ts";
import { event } from "./event.ts";
import { withoutAddress } from "./hidden-address.ts";
import { incidentPaging } from "./incident-paging.ts";
import { itsm } from "./itsm.ts";
import type { Composed, DestinationKind, RateLimit } from "./kind.ts";
import { officeChat } from "./office-chat.ts";
import { redacted, secretsOf } from "./redact.ts";
import type { KindName } from "./retry.ts";
import type { SendEnvironment } from "./send-environment.ts";
import { refusedHost } from "./stored-credential.ts";
import { teamChat } from "./team-chat.ts";
import { webhook } from "./webhook.ts";

type MessageOf<K extends KindName> = Extract<DestinationType["type"], { case: K }>["value"];

const kinds: { readonly [K in KindName]: DestinationKind<MessageOf<K>> } = {
  email,
  event,
  officeChat,
  incidentPaging,
  itsm,
  teamChat,
  webhook,
};

/** A destination's kind, under the one type that all kinds share. */
function kindOf({ type }: DestinationType) {
  const { case: name } = type;
  if (name === undefined) throw new RangeError("a destination without a type");
  const field = DestinationTypeSchema.field[name] as { message: DescMessage };
  return { name, kind: kinds[name] as DestinationKind<Message>, message: type.value as Message, desc: field.message };
}

/** Which rules a destination breaks that the proto does not say: its templates, addresses, secrets. Paths begin with its kind. */
export async function checkDestination(type: DestinationType, tenantId: string): Promise<Broken[]> {
  const { name, kind, message } = kindOf(type);
  const pace = paced(undefined, tenantId);
  const broken = kind.check(message);
  let [areTemplates, all] = [true, 0];
  for (const [path, { text }] of Object.entries(kind.templates(message, ""))) {
    await pace();
    const { broken: why, steps } = checkedTemplate(text);
    // The message is the rule's.
    if (path !== "message") all += steps;
    const rule = why ?? (path === "message" ? undefined : tooManyRenderSteps(all));
    if (rule === undefined) continue;
    broken.push({ path, rule });
    areTemplates = false;
  }
  if (areTemplates && kind.tryOut !== undefined) broken.push(...(await kind.tryOut(message, pace)));
  return broken.map(({ path, rule }) => ({ path: fieldPath(name, path), rule }));
}

/** Returns which templates of a destination have tags of Go's templates, but for those that are stored so. */
export function goTemplates(type: DestinationType, stored?: DestinationType): Broken[] {
  const { name, kind, message } = kindOf(type);
  const before = stored?.type.case === name ? kind.templates(stored.type.value as Message, "") : {};
  return Object.entries(kind.templates(message, "")).flatMap(([path, { text }]) => {
    const rule = text === before[path]?.text ? undefined : goTag(text);
    return rule === undefined ? [] : [{ path: fieldPath(name, path), rule }];
  });
}

/** Names the feature of a destination that servers of the last release cannot read, for `Formats.begin`; undefined: there is none. */
export function newFeatureOf(type: DestinationType): string | undefined {
  const { kind, message } = kindOf(type);
  return kind.newFeature?.(message);
}

/** A destination's type as templates describe it. */
export function describedType(type: DestinationType): Described {
  const { name, message, desc } = kindOf(withoutAddress(type));
  return { name, message, desc };
}

/** The limit of a kind's product on how often one destination is tried; undefined: none. */
export function rateLimitOf(kind: KindName): RateLimit | undefined {
  return kinds[kind].pace;
}

/** Whether a destination keeps one record for all rules. */
export const isJoint = (type: DestinationType): boolean => kindOf(type).kind.joint === true;

/** Whether a destination is sent nothing that only says that some of what fired has ended. */
export const takesNoEnds = (type: DestinationType): boolean => kindOf(type).kind.takesNoEnds === true;

/** Where a destination's threads are, as a text to compare. */
export function threadPlaceOf(type: DestinationType): string {
  const { name, kind, message } = kindOf(type);
  return `${name} ${kind.place?.(message)}`;
}

/** The template that a notification's message is: what a rule says is about one match, or names lists. */
function messageOf(notification: Notification): string {
  if (notification.summary !== undefined) return summaryMessage;
  const { message } = notification.rule;
  return message === "" && hasMembers(notification) ? groupMessage : message;
}

/** Renders one template after the other, in slices; returns why one cannot be. */
async function renderTexts(
  type: DestinationType,
  notification: Notification,
  publicUrl: string,
  pace: Turns,
): Promise<Record<string, string> | TemplateError> {
  const { kind, message } = kindOf(type);
  const described = describedType(type);
  const texts: Record<string, string> = {};
  const ruleMessage = messageOf(notification);
  const steps = newSteps();
  for (const [path, template] of Object.entries(kind.templates(message, ruleMessage))) {
    await pace();
    const { text, markup, charsMax, fitting = Infinity } = template;
    const own = path === "message" ? newSteps() : steps;
    const written = (max: number, left: RenderSteps) =>
      render(parseTemplate(text, left), templateVariables(notification, described, markup, publicUrl, max), markup, {
        steps: left,
        pace,
        charsMax,
      });
    try {
      const whole = await written(linesMax, own);
      texts[path] = whole;
      if (whole.length <= fitting || !hasMembers(notification)) continue;
      const { length } = await written(0, newSteps());
      texts[path] = await written(Math.max(0, Math.min(linesMax, fitting - length)), newSteps());
    } catch (error) {
      if (error instanceof TemplateError) return error;
      throw error;
    }
  }
  return texts;
}

/** What a destination would get, as people read it, or why it would get nothing. Nothing is sent, and no secret is in it. */
export async function compose(
  type: DestinationType,
  notification: Notification,
  world: SendEnvironment,
  pace: Turns = paced(undefined, notification.tenant.id),
): Promise<Composed> {
  const { kind, message } = kindOf(type);
  const texts = await renderTexts(type, notification, world.publicUrl, pace);
  if (texts instanceof TemplateError) return { subject: "", body: `Nothing would be sent: ${texts.message}` };
  const receiver = notification.rule.destinationNames[0] ?? "";
  return kind.compose({ destination: message, notification, texts, receiver }, world);
}

/** One try of one notification at one destination. */
export interface Try extends Pick<SignIn, "destinationKey" | "refreshToken"> {
  /** With its secrets readable, those of a stored credential in their places. */
  readonly type: DestinationType;
  /** Where the secrets of its stored credential may be sent; empty, or absent: to any host. */
  readonly allowedHosts?: readonly string[];
  /** What of that credential no answer quotes, beside the secrets of the type. */
  readonly credentialSecrets?: readonly string[];
  readonly notification: Notification;
  /** What the tries and notifications before it left for this destination and subject; empty at first. */
  readonly state: ThreadState;
  /** What came of its addresses at the tries before it. Absent: there were none. */
  readonly recipients?: readonly Recipient[];
  /** Ends the try at once. */
  readonly signal: AbortSignal;
}

/** What is kept of a receiver's answer, such as the number of a record: it may repeat a secret there, too. */
const withoutSecrets = (state: ThreadState, secrets: ReadonlySet<string>): ThreadState =>
  Object.fromEntries(Object.entries(state).map(([name, text]) => [name, redacted(text, secrets)]));

/**
 * Sends. What a receiver does is an outcome, never an error; `nextTryMs` says when to try again. May be repeated: a receiver
 * can recognise it by the notification's id or subject. The caller keeps the state, also of a try that failed.
 */
export async function send(
  { type, allowedHosts = [], credentialSecrets = [], recipients = [], destinationKey, refreshToken, ...given }: Try,
  world: SendEnvironment,
): Promise<AttemptOutcome> {
  const { name, kind, message, desc } = kindOf(type);
  const refused = refusedHost(type, allowedHosts, world);
  if (refused !== undefined)
    return notSent(name, "refused_address", `the credential is not sent: ${refused.path} ${refused.rule}`, given.state);
  const secrets = new Set([...secretsOf(desc, message), ...credentialSecrets]);
  const signIn = { destinationKey, refreshToken, hide: (secret: string) => void secrets.add(secret) };
  const { notification } = given;
  const texts = await renderTexts(type, notification, world.publicUrl, paced(undefined, notification.tenant.id));
  if (texts instanceof TemplateError) return notSent(name, "bad_request", texts.message, given.state);
  if (withoutAddress(type) !== type) secrets.add(texts.url ?? "");
  const receiver = destinationKey.slice(destinationKey.indexOf("/") + 1);
  const sending = { ...given, recipients, destination: message, texts, receiver };
  const outcome = await kind.send(sending, { ...world, signIn });
  const state = secrets.size === 0 ? outcome.state : withoutSecrets(outcome.state, secrets);
  const tried = outcome.recipients?.map((each) => ({ ...each, answer: redacted(each.answer, secrets) }));
  return { ...outcome, answer: redacted(outcome.answer, secrets), state, ...(tried && { recipients: tried }) };
}
