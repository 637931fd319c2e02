import type { Pace } from "../../event-loop.ts";
import type { Broken } from "../../rpc/constraint-rules.ts";
import type { Notification } from "../subject/notification.ts";
import type { Markup } from "../templates/markup.ts";
import type { SignIn } from "./access-tokens.ts";
import type { AttemptOutcome, Recipient, ThreadState } from "./attempt-outcome.ts";
import type { SendEnvironment } from "./send-environment.ts";

/** A notification with what a destination makes of it. */
export interface Rendered<D> {
  /** Its message in `DestinationType`. */
  readonly destination: D;
  readonly notification: Notification;
  /** The kind's templates, rendered, by their names. */
  readonly texts: Readonly<Record<string, string>>;
  /** The destination's name. */
  readonly receiver: string;
}

/** One try of one notification at one destination, whose secrets are readable. */
export interface Sending<D> extends Rendered<D> {
  /** Empty before the first. */
  readonly state: ThreadState;
  /** What came of the addresses at earlier tries of the same notification. */
  readonly recipients: readonly Recipient[];
  /** Aborts: the try ends at once, with a timeout. */
  readonly signal: AbortSignal;
}

/** What one try reaches the world by. */
export interface TryEnvironment extends SendEnvironment {
  readonly signIn: SignIn;
}

/** What a destination would get: for people to read, without secrets. */
export interface Composed {
  /** Empty for kinds that have none. */
  readonly subject: string;
  readonly body: string;
}

/** The products' own limits on one destination: this many tries within this many ms. */
export interface RateLimit {
  readonly tries: number;
  readonly perMs: number;
}

/** A text with tags, and what it is to become. */
export interface TemplateField {
  readonly text: string;
  readonly markup: Markup;
  /** What is beyond is of no use to the kind. Absent: `renderedCharsMax`. */
  readonly charsMax?: number;
  /** A longer text about a group names fewer of its members, so that what stands after them is not cut off. */
  readonly fitting?: number;
}

/** A kind of destination. */
export interface DestinationKind<D> {
  /** Its product's limit on one destination. */
  readonly pace?: RateLimit;
  /** It keeps one record for all rules, which ends with the last of their matches. */
  readonly joint?: true;
  /** It is sent nothing that only says that others than those which still fire have ended: its product knows no such message. */
  readonly takesNoEnds?: true;
  /** Where its threads are: what is kept of them is of no use elsewhere. Absent: it keeps nothing that is bound to a place. */
  place?(destination: D): string;
  /** Its templates by name: the path within the destination's message, or `message` for the rule's own. */
  templates(destination: D, ruleMessage: string): Readonly<Record<string, TemplateField>>;
  /** Which rules it breaks that its proto message does not say; paths are within it. */
  check(destination: D): Broken[];
  /** What of it servers of the version before cannot read, as the begin of a sentence; undefined: nothing. Absent: they read all. */
  newFeature?(destination: D): string | undefined;
  /** Which of its templates, all of which are whole, make of samples what it cannot send. Absent: it sends whatever they make. */
  tryOut?(destination: D, pace: Pace): Promise<Broken[]>;
  /** What it would send, as people read it. */
  compose(sending: Rendered<D>, world: SendEnvironment): Composed;
  /** Sends. Never throws for what a receiver does. May be repeated: the receiver can recognise it by the notification's id. */
  send(sending: Sending<D>, world: TryEnvironment): Promise<AttemptOutcome>;
}
