import { clone, type DescField, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

/** How the API shows a secret that is stored; sent back, it stays what it is. */
export const storedSecret = "********";

const isSecret = (field: DescField) => field.proto.options?.debugRedact === true;

/** A secret within a message, where the proto says so. */
interface Secret {
  readonly path: string;
  readonly value: string;
  /** Empties it; the name of one in a map stays. */
  forget(): void;
}

function* secretsIn(message: ReflectMessage, path = ""): Generator<Secret> {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    const at = `${path}.${field.jsonName}`;
    if (field.fieldKind === "message") yield* secretsIn(message.get(field), at);
    else if (field.fieldKind === "list" && field.listKind === "message") {
      for (const item of message.get(field)) yield* secretsIn(item as ReflectMessage, at);
    } else if (!isSecret(field)) continue;
    else if (field.fieldKind === "map") {
      const map = message.get(field);
      for (const [key, value] of map)
        yield { path: `${at}[${key}]`, value: String(value), forget: () => void map.set(key, "") };
    } else yield { path: at, value: String(message.get(field)), forget: () => message.clear(field) };
  }
}

/** A copy without the secrets that were typed; those that only say that one is stored remain. */
export function withoutSecrets<S extends DescMessage>(schema: S, value: MessageShape<S>): MessageShape<S> {
  const safe = clone(schema, value);
  for (const { value: text, forget } of secretsIn(reflect(schema, safe))) if (text !== storedSecret) forget();
  return safe;
}

/** Whether a message holds a secret that is stored: what it says cannot be made again once it is deleted. */
export const holdsSecret = <S extends DescMessage>(schema: S, value: MessageShape<S>): boolean =>
  [...secretsIn(reflect(schema, value))].some(({ value: text }) => text !== "");

/** Whether two states of a message hold the same stored secrets, and no new ones: one can be put back over the other. */
export function sameSecrets<S extends DescMessage>(schema: S, before: MessageShape<S>, now: MessageShape<S>): boolean {
  const [old, own] = [before, now].map((each) => [...secretsIn(reflect(schema, each))].filter(({ value }) => value));
  const paths = (secrets: readonly Secret[] = []) => secrets.map(({ path }) => path).sort();
  const kept = [...(old ?? []), ...(own ?? [])].every(({ value }) => value === storedSecret);
  return kept && paths(old).join("\n") === paths(own).join("\n");
}

/** A copy of a kept draft in which secrets that are stored stay so: one that was removed looks like one that was typed. */
export function withStoredSecrets<S extends DescMessage>(
  schema: S,
  draft: MessageShape<S>,
  stored: MessageShape<S>,
): MessageShape<S> {
  const whole = clone(schema, draft);
  keepStored(reflect(schema, whole), reflect(schema, stored));
  return whole;
}

function keepStored(draft: ReflectMessage, stored: ReflectMessage): void {
  for (const field of stored.fields) {
    if (!stored.isSet(field)) continue;
    if (field.fieldKind === "message") {
      if (draft.isSet(field)) keepStored(draft.get(field), stored.get(field));
    } else if (!isSecret(field)) continue;
    else if (field.fieldKind === "map") {
      const map = draft.get(field);
      for (const [key, value] of stored.get(field))
        if (value === storedSecret && map.get(key) === "") map.set(key, storedSecret);
    } else if (stored.get(field) === storedSecret && !draft.isSet(field) && field.oneof === undefined) {
      draft.set(field as never, storedSecret as never);
    }
  }
}
