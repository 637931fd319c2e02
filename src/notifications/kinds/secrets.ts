import { randomBytes } from "node:crypto";
import { clone, type DescMessage, type Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { type DestinationType, DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { invalidFields } from "../../errors.ts";
import { fieldPath } from "../../rpc/constraint-rules.ts";
import { addressHint, addressPath, isSecretAddress } from "./hidden-address.ts";
import { hidden } from "./redact.ts";

/** Sent as signingSecret: the service shall make one. */
const wish = "generate";
const signingBytes = 32;

/** What the secrets of a destination are sealed for. */
export const secretOwner = (name: string) => ({ kind: "destination", id: name });

/** A secret within a destination's type, where the proto says `debug_redact`. */
interface Secret {
  /** Its JSON path within the type, for example `itsm.basic.password`. */
  readonly path: string;
  readonly value: string;
  set(value: string): void;
}

function* secretsIn(desc: DescMessage, message: Message, path = ""): Generator<Secret> {
  const view = reflect(desc, message, false);
  for (const field of desc.fields) {
    if (!view.isSet(field)) continue;
    const at = fieldPath(path, field.jsonName);
    if (field.fieldKind === "message") yield* secretsIn(field.message, view.get(field).message, at);
    else if (field.proto.options?.debugRedact !== true && !(at === addressPath && hidesAddress(message))) continue;
    else if (field.fieldKind === "map") {
      const map = view.get(field);
      for (const [key, value] of map) {
        const set = (text: string) => void map.set(key, text);
        if (value !== "") yield { path: `${at}[${JSON.stringify(key)}]`, value: value as string, set };
      }
    } else yield { path: at, value: view.get(field) as string, set: (text) => view.set(field, text) };
  }
}

const hidesAddress = ({ url }: Message & { url?: string }) =>
  url !== undefined && (url === hidden || isSecretAddress(url));

const within = (type: DestinationType) => [...secretsIn(DestinationTypeSchema, type)];

/** A destination's type taken apart to be stored. Paths are within the type. */
export interface Parted {
  /** With `********` in place of each secret. */
  readonly masked: DestinationType;
  /** New secrets by their paths. */
  readonly fresh: Record<string, string>;
  /** Paths of those that were sent as `********`. */
  readonly kept: string[];
  /** Those that the service has made. */
  readonly generated: Record<string, string>;
}

/** Parts a type from its secrets; it stays as it is. */
export function partSecrets(type: DestinationType): Parted {
  const masked = clone(DestinationTypeSchema, type);
  const parted: Parted = { masked, fresh: {}, kept: [], generated: {} };
  for (const { path, value, set } of within(masked)) {
    if (value === hidden) parted.kept.push(path);
    else if (path === "webhook.signingSecret" && value === wish) {
      parted.generated[path] = `whsec_${randomBytes(signingBytes).toString("base64")}`;
      parted.fresh[path] = parted.generated[path];
    } else parted.fresh[path] = value;
    set(hidden);
  }
  const { case: kind, value } = masked.type;
  if (kind === "webhook" && !parted.kept.includes(addressPath))
    value.addressHint = addressHint(parted.fresh[addressPath] ?? "");
  return parted;
}

/** The same with a webhook's address in its place, also where it is a secret. */
export function withPlainAddress({ masked, fresh: { [addressPath]: url, ...fresh }, ...parted }: Parted): Parted {
  if (url === undefined) return { masked, fresh, ...parted };
  const plain = withSecrets(masked, { [addressPath]: url });
  if (plain.type.case === "webhook") plain.type.value.addressHint = "";
  return { masked: plain, fresh, ...parted };
}

/** The type with the address that is stored, where it was sent as `********`. @throws code 3 below `at` where none is stored that was shown so */
export function withStoredAddress(
  type: DestinationType,
  stored: DestinationType | undefined,
  at: string,
): DestinationType {
  if (type.type.case !== "webhook" || type.type.value.url !== hidden) return type;
  const url = stored?.type.case === "webhook" ? stored.type.value.url : "";
  return withSecrets(type, keptOf(isSecretAddress(url) ? { [addressPath]: url } : {}, [addressPath], at));
}

/** The type with secrets in place of `********`, where they are known. */
export function withSecrets(type: DestinationType, secrets: Readonly<Record<string, string>>): DestinationType {
  const filled = clone(DestinationTypeSchema, type);
  for (const { path, value, set } of within(filled)) {
    const known = secrets[path];
    if (value === hidden && known !== undefined) set(known);
  }
  return filled;
}

/** The stored secrets of these paths. @throws code 3 below `at` for each that there is none of */
export function keptOf<T>(
  stored: Readonly<Record<string, T>>,
  paths: readonly string[],
  at: string,
): Record<string, T> {
  const missing = paths.filter((path) => !Object.hasOwn(stored, path));
  const rule = `must be the secret itself: none is stored that ${hidden} could keep`;
  if (missing.length > 0)
    throw invalidFields(missing.map((path) => ({ path: fieldPath(at, path), rule, id: FieldRule.SECRET })));
  return Object.fromEntries(paths.map((path) => [path, stored[path] as T]));
}
