import type { DescField } from "@bufbuild/protobuf";
import { type DescMessage, hasOption } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { update_mask } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { optionOf } from "../proto-option.ts";
import { invalidValue } from "../wire/status.ts";
import { fieldsByKey } from "./json/key-finder.ts";
import { keysOf } from "./json/path.ts";
import type { MessageValues } from "./json/values.ts";
import { fieldNamed, type Route } from "./routes/binding.ts";
import { findTarget, setIn, type Target, valueIn } from "./url/target.ts";

/** Holds what the path says of a message against what the body says: the same is fine, another value is code 3. */
export interface PathChecker {
  /** The path's values, before the body is read into the same message. */
  before(message: MessageValues): unknown[];
  /** Compares, and puts back what the body has replaced without naming it. */
  after(message: MessageValues, text: string, before: readonly unknown[]): void;
}

/** The checker of the path variables below a field path of the request; undefined when there are none. */
export function pathChecker(route: Route, root: readonly string[]): PathChecker | undefined {
  const targets: Target[] = [];
  for (const { path } of route.variables) {
    if (!root.every((name, i) => path[i] === name)) continue;
    const desc = root.length === 0 ? route.method.input : fieldMessage(route, root[0] as string);
    const target = desc === undefined ? undefined : findTarget(desc, path.slice(root.length), fieldNamed);
    if (target !== undefined && !("lacking" in target)) targets.push(target);
  }
  if (targets.length === 0) return undefined;
  return {
    before: (message) => targets.map((target) => valueOf(target, message)),
    after(message, text, before) {
      for (const [i, target] of targets.entries()) {
        const said = valueOf(target, message);
        if (same(said, before[i])) continue;
        if (names(text, target.fields)) throw invalidValue(target.path, "differs from the value in the path");
        setIn(target.holder(message), target.fields.at(-1) as DescField, before[i]);
      }
    },
  };
}

function fieldMessage(route: Route, name: string) {
  return fieldNamed(route.method.input, name)?.message;
}

function valueOf(target: Target, message: MessageValues): unknown {
  return valueIn(target.holder(message), target.fields.at(-1) as DescField);
}

function same(a: unknown, b: unknown): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  return Object.is(a, b);
}

/** Whether a JSON text has a value, other than null, at these fields. */
function names(text: string, fields: readonly DescField[]): boolean {
  let at = 0;
  for (const field of fields) {
    const found = keysOf(text, at).find(({ key }) => fieldsByKey(field.parent).get(key) === field);
    if (found === undefined) return false;
    at = found.valueAt;
  }
  return !text.startsWith("null", at);
}

/**
 * Fills the request's field mask, where the RPC declares one and the request leaves it out, from the keys that the JSON
 * body carries; `body` is the message of the body. undefined when the RPC declares none.
 */
export function maskFiller(
  route: Route,
  body: DescMessage | undefined,
): ((request: MessageValues, text: string) => void) | undefined {
  const { method } = route;
  if (body === undefined || !hasOption(method, update_mask)) return undefined;
  const name = optionOf(method, update_mask);
  const mask = fieldNamed(method.input, name);
  if (mask?.message?.typeName !== "google.protobuf.FieldMask") {
    throw new Error(`${method.parent.typeName}.${method.name}: update_mask names ${name}, which is no field mask`);
  }
  const whole = route.body === "*";
  // What the path says is no change.
  const said = route.variables.map(({ path }) => (whole || path[0] !== route.body ? path : path.slice(1))[0] as string);
  const apart = new Set(whole ? [mask.name, ...said] : said);
  return (request, text) => {
    if (request[mask.localName] !== undefined) return;
    const paths = keysOf(text).flatMap(({ key, valueAt }) => {
      const field = fieldsByKey(body).get(key);
      if (field === undefined || apart.has(field.name)) return [];
      const inner = whole && field.fieldKind === "message" && !hasCustomJsonRepresentation(field.message);
      if (!inner || text[valueAt] !== "{") return [field.name];
      const { message } = field;
      return keysOf(text, valueAt).flatMap((sub) => {
        const member = fieldsByKey(message).get(sub.key);
        return member === undefined ? [] : [`${field.name}.${member.name}`];
      });
    });
    request[mask.localName] = { $typeName: "google.protobuf.FieldMask", paths };
  };
}
