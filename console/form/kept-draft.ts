import { type DescMessage, fromJsonString, type MessageShape, toJsonString } from "@bufbuild/protobuf";
import { session } from "../data/session.ts";
import { withoutSecrets, withStoredSecrets } from "./secrets.ts";

/** What was typed and not sent, kept for this tab's life without its secrets; it belongs to a session. */
const nameOf = (key: string) => `belfry.draft.${session.peek()?.id ?? ""}.${key}`;

const charsMax = 200_000;

export function keepDraft<S extends DescMessage>(schema: S, key: string, value: MessageShape<S>): void {
  try {
    const text = toJsonString(schema, withoutSecrets(schema, value));
    if (text.length <= charsMax) sessionStorage.setItem(nameOf(key), text);
  } catch {
    // Without storage, or of what is no valid message yet, nothing is kept.
  }
}

/** The draft of a form that began with `stored`. */
export function readDraft<S extends DescMessage>(
  schema: S,
  key: string,
  stored: MessageShape<S>,
): MessageShape<S> | undefined {
  try {
    const text = sessionStorage.getItem(nameOf(key));
    if (text === null) return undefined;
    return withStoredSecrets(schema, fromJsonString(schema, text, { ignoreUnknownFields: true }), stored);
  } catch {
    return undefined;
  }
}

export function forgetDraft(key: string): void {
  try {
    sessionStorage.removeItem(nameOf(key));
  } catch {
    // As above.
  }
}
