import {
  clearField,
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  isFieldSet,
  type Message,
} from "@bufbuild/protobuf";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { update_mask } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { http } from "#gen/google/api/annotations_pb.ts";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.ts";
import { invalidFields } from "../errors.ts";
import { optionOf } from "../proto-option.ts";
import { checkedApart } from "../wire/message-limits.ts";
import { type Broken, brokenRules, fieldPath, memberOf, messagesIn } from "./constraint-rules.ts";
import { nameRules } from "./name-rules.ts";
import { plainRules } from "./plain-rules.ts";
import { brokenByteBounds, brokenCountBound } from "./request-bounds.ts";

/**
 * Checks a request against the rules of its proto file: buf.validate on the values that are present, then
 * google.api.field_behavior: OUTPUT_ONLY members are dropped, REQUIRED ones must be there (in an update: when masked).
 * @throws code 3 that names every broken rule with its path.
 */
export function validateRequest(method: DescMethod): (request: unknown) => void {
  const behaviour = behaviourOf(method.input);
  const masked = maskOf(method);
  const names = nameRules(method);
  compileRules(method.input);
  return (request) => {
    const message = request as Message;
    const missing: Broken[] = names?.(message) ?? [];
    if (behaviour !== undefined) applyBehaviour(behaviour, message, "", masked?.(message) ?? always, missing);
    const broken = [...missing, ...rulesBroken(method.input, message), ...brokenByteBounds(method.input, message)];
    if (broken.length > 0) throw invalidFields(broken);
  };
}

const rulesBroken = (schema: DescMessage, message: Message): Broken[] =>
  plainRules(schema)?.(message as never) ? [] : brokenRules(schema, message);

/** Compiles the rules of a request and of items that are checked apart: up to 0.1 s that no caller waits for. */
function compileRules(schema: DescMessage): void {
  plainRules(schema);
  brokenRules(schema, create(schema));
  for (const field of schema.fields)
    if (field.message !== undefined && checkedApart(field)) compileRules(field.message);
}

/** The rules of `schema` that one item of a batch breaks, empty when it is good; `path` is the item's own, for example `events[3]`. */
export function validateItem(schema: DescMessage, message: Message, path: string): Broken[] {
  const tooMany = brokenCountBound(schema, message);
  // One that holds too much is not looked at any further.
  const broken =
    tooMany === undefined ? [...rulesBroken(schema, message), ...brokenByteBounds(schema, message)] : [tooMany];
  return broken.map(({ path: inner, rule }) => ({ path: fieldPath(path, inner), rule }));
}

/** Why an item of a batch cannot be taken; empty when it can. */
export function itemError(schema: DescMessage, message: Message, path: string): string {
  return rulesText(validateItem(schema, message, path));
}

const namedMax = 10;
const textCharsMax = 4096;

/** The first rules of those that an item breaks, and how many more: it may hold tens of thousands of wrong values. */
export function rulesText(broken: readonly Broken[]): string {
  const first = broken.slice(0, namedMax).map(({ path, rule }) => `${path}: ${rule}`);
  const more = broken.length - first.length;
  const text = [...first, ...(more > 0 ? [`has ${more} more mistakes`] : [])].join("; ");
  return (text.length > textCharsMax ? `${text.slice(0, textCharsMax)}…` : text).toWellFormed();
}

/** What field_behavior asks of a message: only the fields that it, or something below it, speaks of. */
interface Behaviour {
  fields: { field: DescField; required: boolean; outputOnly: boolean; below: () => Behaviour | undefined }[];
}

const behaviours = new Map<DescMessage, Behaviour | undefined>();

function behaviourOf(desc: DescMessage): Behaviour | undefined {
  if (behaviours.has(desc)) return behaviours.get(desc);
  const fields: Behaviour["fields"] = [];
  for (const field of desc.fields) {
    const marks = optionOf(field, field_behavior);
    const required = marks.includes(FieldBehavior.REQUIRED);
    const outputOnly = marks.includes(FieldBehavior.OUTPUT_ONLY);
    const child = checkedApart(field) ? undefined : field.message;
    const speaks = child !== undefined && speaksOfBehaviour(child, new Set());
    if (required || outputOnly || speaks) {
      fields.push({ field, required, outputOnly, below: () => (speaks ? behaviourOf(child) : undefined) });
    }
  }
  const behaviour = fields.length === 0 ? undefined : { fields };
  behaviours.set(desc, behaviour);
  return behaviour;
}

function speaksOfBehaviour(desc: DescMessage, seen: Set<DescMessage>): boolean {
  if (seen.has(desc) || desc.typeName.startsWith("google.")) return false;
  seen.add(desc);
  return desc.fields.some(
    (field) =>
      optionOf(field, field_behavior).length > 0 ||
      (field.message !== undefined && !checkedApart(field) && speaksOfBehaviour(field.message, seen)),
  );
}

/** Whether a field that is REQUIRED must be there; `path` is made of proto names, without list places. */
type Wanted = (path: string) => boolean;
const always: Wanted = () => true;

function applyBehaviour(
  { fields }: Behaviour,
  message: Message,
  path: string,
  wanted: Wanted,
  broken: Broken[],
  protoPath = "",
) {
  for (const { field, required, outputOnly, below } of fields) {
    const own = fieldPath(path, field.jsonName);
    const ownProto = fieldPath(protoPath, field.name);
    if (!isFieldSet(message, field)) {
      if (required && wanted(ownProto)) broken.push({ path: own, rule: "is required", id: FieldRule.REQUIRED });
      continue;
    }
    if (outputOnly) {
      clearField(message, field);
      continue;
    }
    const child = below();
    if (child === undefined) continue;
    for (const [place, value] of messagesIn(field, message))
      applyBehaviour(child, value, own + place, wanted, broken, ownProto);
  }
}

/**
 * For an RPC with an update mask: which required fields an update must carry. Those outside of the resource always, and
 * those that the path names; other ones inside when the mask names them or what they lie in. An empty mask means the
 * populated fields, so that only what lies within one of them is required.
 */
function maskOf(method: DescMethod): ((request: Message) => Wanted) | undefined {
  const maskName = optionOf(method, update_mask);
  if (maskName === "") return undefined;
  const mask = method.input.fields.find((field) => field.name === maskName);
  if (mask === undefined) {
    throw new Error(`${method.parent.typeName}.${method.name}: its request has no field ${maskName}`);
  }
  const { body, pattern } = optionOf(method, http);
  const prefix = body === "*" || body === "" ? "" : `${body}.`;
  const bare = prefix === "" ? withoutMember(method.input) : (path: string) => path;
  return (request) => {
    const { paths } = (memberOf(mask, request) as { paths: string[] } | undefined) ?? { paths: [] };
    const named = paths.map(bare);
    return (path) => {
      if (!path.startsWith(prefix) || String(pattern.value).includes(`{${path}}`)) return true;
      const inner = bare(path.slice(prefix.length));
      if (named.length === 0) return inner.includes(".");
      return named.some((each) => inner === each || inner.startsWith(`${each}.`));
    };
  };
}

/** Where the request is the resource, a member may also hold it whole: what is `user.groups` there is `groups`. */
function withoutMember(input: DescMessage) {
  const members = input.fields.filter(({ fieldKind, message }) => {
    return fieldKind === "message" && !message.typeName.startsWith("google.");
  });
  return (path: string) => {
    const member = members.find(({ name }) => path.startsWith(`${name}.`));
    return member === undefined ? path : path.slice(member.name.length + 1);
  };
}
