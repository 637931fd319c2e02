import { clone, type DescMessage, fromJsonString, type MessageShape, toJsonString } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { session } from "../../frame/session.ts";

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

export function readDraft<S extends DescMessage>(schema: S, key: string): MessageShape<S> | undefined {
  try {
    const text = sessionStorage.getItem(nameOf(key));
    return text === null ? undefined : fromJsonString(schema, text, { ignoreUnknownFields: true });
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

/** How the API shows a secret that is stored; sent back, it stays what it is. */
export const storedSecret = "********";

/** A copy without the secrets that were typed. */
export function withoutSecrets<S extends DescMessage>(schema: S, value: MessageShape<S>): MessageShape<S> {
  const safe = clone(schema, value);
  removeSecrets(reflect(schema, safe));
  return safe;
}

/** Empties the secrets of a message, but for those that only say that one is stored. */
function removeSecrets(message: ReflectMessage): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    if (field.proto.options?.debugRedact === true) {
      if (field.fieldKind === "scalar" && message.get(field) !== storedSecret) message.clear(field);
      else if (field.fieldKind === "map") {
        const held = message.get(field);
        for (const [name, value] of held) if (value !== storedSecret) held.set(name, "");
      }
    } else if (field.fieldKind === "message") removeSecrets(message.get(field));
    else if (field.fieldKind === "list" && field.listKind === "message") {
      for (const item of message.get(field)) removeSecrets(item as ReflectMessage);
    }
  }
}
