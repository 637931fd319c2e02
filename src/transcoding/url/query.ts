import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { update_mask } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { optionOf } from "../../proto-option.ts";
import { invalidValue } from "../../wire/status.ts";
import { didYouMean } from "../did-you-mean.ts";
import { mapKey } from "../json/key-finder.ts";
import { fail, isJsonError, quotedKey, shortened } from "../json/scan.ts";
import { type MessageValues, setOwn } from "../json/values.ts";
import { fieldNamed, type Route } from "../routes/binding.ts";
import { findTarget, setIn, type Target } from "./target.ts";

/** Fills a request from the raw query, the text after the `?`. Throws code 3 that names the parameter. */
export type QueryReader = (query: string, request: MessageValues) => void;

const namesMax = 1000;
const depthMax = 32;

/**
 * Compiles the query reader of a route. Parameters that the path or the body sets are refused; a field mask that says
 * which keys of the body count may stand here even when the body is the whole request.
 */
export function queryReader(route: Route): QueryReader {
  const input = route.method.input;
  const mask = input.fields.find(({ name }) => name === optionOf(route.method, update_mask));
  const inPath = new Set(route.variables.map(({ path }) => path.join(".")));
  const known = new Map<string, Target>();

  return (query, request) => {
    const seen = new Set<string>();
    for (const pair of query.split("&")) {
      if (pair === "") continue;
      const equals = pair.indexOf("=");
      const name = decode(equals === -1 ? pair : pair.slice(0, equals));
      if (name === undefined) throw invalidValue("", `the name of the query parameter ${quotedKey(pair)} is malformed`);
      const text = equals === -1 ? "" : decode(pair.slice(equals + 1));
      if (text === undefined) throw invalidValue(shortened(name), "has a malformed escape, or is not UTF-8");
      if (route.body === "*" && name !== mask?.name && name !== mask?.jsonName) {
        throw invalidValue(shortened(name), "unknown query parameter; everything is in the body");
      }
      try {
        set(name, text, request, seen);
      } catch (error) {
        throw isJsonError(error) ? invalidValue(shortened(name), error.message) : error;
      }
    }
  };

  function set(name: string, text: string, request: MessageValues, seen: Set<string>): void {
    const bracket = name.endsWith("]") ? name.indexOf("[") : -1;
    const target = targetOf(bracket === -1 ? name : name.slice(0, bracket));
    const field = target.fields.at(-1) as DescField;
    const { read } = target;
    if ((field.fieldKind === "map") !== (bracket !== -1)) {
      fail(0, bracket === -1 ? `is a map: write ${name}[key]=value` : "is no map");
    }
    if (read === undefined || (field.fieldKind === "map" && field.mapKind === "message")) {
      fail(0, "cannot be given in a query");
    }
    const holder = target.holder(request);
    if (field.fieldKind === "list") {
      (holder[field.localName] as unknown[]).push(read(text));
      return;
    }
    if (field.fieldKind === "map") {
      const key = mapKey(field)(name.slice(bracket + 1, -1), 0);
      const map = holder[field.localName] as MessageValues;
      if (Object.hasOwn(map, key)) fail(0, "is given twice");
      setOwn(map, key, read(text));
      return;
    }
    if (seen.has(target.id)) fail(0, "is given twice");
    seen.add(target.id);
    setIn(holder, field, read(text));
  }

  function targetOf(name: string): Target {
    const before = known.get(name);
    if (before !== undefined) return before;
    const names = name.split(".");
    if (names.length > depthMax) fail(0, `has more than ${depthMax} parts`);
    const target = findTarget(input, names);
    if ("lacking" in target) unknownName(target.lacking, names, target.at);
    if (inPath.has(target.id)) fail(0, "is set by the path");
    if (target.fields[0]?.name === route.body) fail(0, "is set by the body");
    if (known.size < namesMax) known.set(name, target);
    return target;
  }
}

function unknownName(lacking: DescMessage, names: readonly string[], at: number): never {
  const name = names[at] ?? "";
  const candidates = lacking.fields.map(({ jsonName }) => jsonName);
  fail(0, `unknown query parameter${didYouMean(name, candidates)}`);
}

/** Undoes the escapes and the plus signs of a query; undefined when they are malformed or no UTF-8. */
function decode(text: string): string | undefined {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return undefined;
  }
}

/** The reader of a path's variables: fills a request from their raw texts, in the order of the route's variables. */
export function pathReader(route: Route): (raw: readonly string[], request: MessageValues) => void {
  const targets = route.variables.map(({ path, many }) => {
    const target = findTarget(route.method.input, path, fieldNamed);
    if ("lacking" in target || target.read === undefined) throw new Error(`${route.template}: no ${path.join(".")}`);
    return { target, read: target.read, field: target.fields.at(-1) as DescField, many };
  });
  return (raw, request) => {
    for (let i = 0; i < targets.length; i++) {
      const { target, read, field, many } = targets[i] as (typeof targets)[number];
      const text = decodeSegments(raw[i] as string, many);
      if (text === undefined) throw invalidValue(target.path, "has a malformed escape, or is not UTF-8");
      try {
        setIn(target.holder(request), field, read(text));
      } catch (error) {
        throw isJsonError(error) ? invalidValue(target.path, error.message) : error;
      }
    }
  };
}

function decodeSegments(raw: string, many: boolean): string | undefined {
  if (!raw.includes("%")) return raw;
  try {
    // In a value of many segments an escaped slash must stay apart from one between segments.
    return decodeURIComponent(many ? raw.replace(/%2f/gi, (escape) => `%25${escape.slice(1)}`) : raw);
  } catch {
    return undefined;
  }
}
