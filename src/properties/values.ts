import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { customPropertiesMax } from "../entities/custom-properties.ts";
import { isOverfull } from "../entities/terms.ts";
import type { Broken } from "../rpc/constraint-rules.ts";

const nameCharactersMax = 255;

function brokenName(name: string): string | undefined {
  if (name === "") return "must have a name of at least 1 character";
  if (name.length > nameCharactersMax && [...name].length > nameCharactersMax) {
    return `must have a name of at most ${nameCharactersMax} characters`;
  }
  if (!name.isWellFormed()) return "must have a name of whole characters";
  return /\p{Cc}/u.test(name) ? "must have a name without control characters" : undefined;
}

function brokenScalar(value: JsonValue): string | undefined {
  switch (typeof value) {
    case "boolean":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : "must be finite";
    case "string":
      if (value.includes("\0")) return "must not contain NUL";
      return value.isWellFormed() ? undefined : "must be of whole characters";
    default:
      return "must be a string, a number or a boolean";
  }
}

function brokenValue(value: JsonValue, path: string): Broken[] {
  if (!Array.isArray(value)) {
    const rule = brokenScalar(value);
    if (rule === undefined) return [];
    const wrongKind = typeof value === "object";
    return [{ path, rule: wrongKind ? "must be a string, a number, a boolean or a list of them" : rule }];
  }
  return value.flatMap((item, i) => {
    const rule = brokenScalar(item);
    return rule === undefined ? [] : [{ path: `${path}[${i}]`, rule }];
  });
}

/** The rules that properties to be set break, with their paths; empty when they are good. */
export function brokenProperties(properties: JsonObject | undefined, path: string): Broken[] {
  const entries = Object.entries(properties ?? {});
  if (entries.length === 0) return [{ path, rule: "must have at least 1 property" }];
  if (entries.length > customPropertiesMax)
    return [{ path, rule: `must have at most ${customPropertiesMax} properties` }];
  const broken = entries.flatMap(([name, value]) => {
    const own = `${path}[${JSON.stringify(name)}]`;
    const rule = brokenName(name);
    return rule === undefined ? brokenValue(value, own) : [{ path: own, rule }];
  });
  return broken.length > 0 ? broken : brokenTerms(properties ?? {}, path);
}

function brokenTerms(properties: JsonObject, path: string): Broken[] {
  if (!isOverfull("c", properties)) return [];
  return [{ path, rule: "hold more values to search for than an index takes: send fewer of them, or shorter names" }];
}
