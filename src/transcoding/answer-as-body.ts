import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { fieldsByKey } from "./json/key-finder.ts";
import { keysOf } from "./json/path.ts";
import type { Route } from "./routes/binding.ts";

/** Turns the text of a body that holds what reading a resource has answered into one that the route takes; other texts stay. */
export type Adapt = (text: string) => string;

const same: Adapt = (text) => text;

/** Makes what adapts bodies of changes: an answer may wrap the resource that a body is, or be the resource that a body wraps. */
export function sentBack({ verb, body, method }: Route): Adapt {
  if (verb !== "PUT" && verb !== "PATCH") return same;
  const { input } = method;
  if (body === "") return same;
  if (body !== "*") {
    const field = input.fields.find(({ name }) => name === body);
    return field?.message === undefined || fieldsByKey(field.message).has(field.jsonName) ? same : unwrapping(field);
  }
  const [held, other] = input.fields.filter(isResource);
  return held === undefined || other !== undefined ? same : wrapping(input, held);
}

const isResource = ({ fieldKind, message }: DescField) =>
  fieldKind === "message" && !message?.typeName.startsWith("google.");

/** Blanks the wrapper out, so that places in errors stay. */
function unwrapping({ jsonName, name }: DescField): Adapt {
  return (text) => {
    const [only, other] = keysIn(text);
    if (only === undefined || other !== undefined || (only.key !== jsonName && only.key !== name)) return text;
    const end = text.lastIndexOf("}");
    if (text[only.valueAt] !== "{") return text;
    return `${" ".repeat(only.valueAt)}${text.slice(only.valueAt, end)} ${text.slice(end + 1)}`;
  };
}

/** Puts a bare resource where the request holds it, and what both have, such as an id, beside it. */
function wrapping(input: DescMessage, held: DescField): Adapt {
  const own = fieldsByKey(input);
  const inner = fieldsByKey(held.message as DescMessage);
  return (text) => {
    const keys = keysIn(text);
    const bare = keys.some(({ key }) => !own.has(key)) && keys.every(({ key }) => inner.has(key));
    if (!bare) return text;
    const shared = keys.flatMap(({ key, valueAt }) => {
      const field = own.get(key);
      if (field === undefined || field === held) return [];
      const [value] = /^"(?:[^"\\]|\\.)*"/.exec(text.slice(valueAt, valueAt + sharedCharsMax)) ?? [];
      return value === undefined ? [] : [`${JSON.stringify(key)}:${value},`];
    });
    return `{${shared.join("")}${JSON.stringify(held.jsonName)}:${text}}`;
  };
}

const sharedCharsMax = 4096;

/** The keys of an object; none of a text that is no JSON, which is told where it is read. */
function keysIn(text: string): ReturnType<typeof keysOf> {
  try {
    return keysOf(text);
  } catch {
    return [];
  }
}
