import { type DescField, type DescMethod, type Message, ScalarType } from "@bufbuild/protobuf";
import { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { permissionOf } from "../auth/permission.ts";
import type { Broken } from "./constraint-rules.ts";

/**
 * The one rule for names by which things are distinguished: equal ones look equal. They are stored in Unicode's form NFC, and
 * hold no control characters, none without width, none that turn the direction of a text, and no space at their ends.
 */
const rules: readonly [RegExp, string][] = [
  [/[\p{Cc}\p{Zl}\p{Zp}]/u, "must not contain control characters or line breaks"],
  [/[\p{Cf}\u115f\u1160\u3164\uffa0]/u, "must not contain characters without width, nor any of direction"],
  [/^\s|\s$/u, "must not begin or end with a space"],
];

/** A name by which a thing is found: the same for all ways to write its characters. */
export const normalizedName = (name: string): string => name.normalize("NFC");

type Values = Record<string, unknown>;

const isName = (field: DescField) =>
  field.name === "name" && field.fieldKind === "scalar" && field.scalar === ScalarType.STRING;

/** Names of things that are there: `name`, and lists such as `names` and `trigger_names`. */
const isReference = (field: DescField) =>
  isName(field) || (field.fieldKind === "list" && field.scalar === ScalarType.STRING && /(^|_)names$/.test(field.name));

/** The resources in a request, one or a list of them; what the data receiver takes is called as it is. */
const isResource = ({ fieldKind, message }: DescField) =>
  fieldKind !== "map" &&
  message !== undefined &&
  !/^(google|belfry\.receiver)\./.test(message.typeName) &&
  message.fields.some(isName);

/** Brings the names in a request to form NFC, and answers the rules that those break which it gives to something. */
export function nameRules(method: DescMethod): ((request: Message) => Broken[]) | undefined {
  if (permissionOf(method) === Permission.INGEST) return undefined;
  const gives = /^(Create|Replace|Update|Rename)/.test(method.name);
  const own = method.input.fields.filter(isReference);
  const resources = method.input.fields.filter(isResource);
  if (own.length === 0 && resources.length === 0) return undefined;
  return (request) => {
    const values = request as unknown as Values;
    for (const field of own) normalise(values, field);
    const known = typeof values.name === "string" ? values.name : undefined;
    // What is called in the path is there already; a request of plain fields that creates names it there, too.
    const broken = known !== undefined && method.name.startsWith("Create") ? brokenName(known, "name") : [];
    for (const field of resources) {
      for (const [path, resource] of resourcesIn(values, field)) {
        for (const each of (field.message as NonNullable<DescField["message"]>).fields.filter(isReference)) {
          normalise(resource, each);
        }
        const name = String(resource.name);
        if (gives && name !== known) broken.push(...brokenName(name, `${path}.name`));
      }
    }
    return broken;
  };
}

function resourcesIn(values: Values, { localName, jsonName }: DescField): [string, Values][] {
  const value = values[localName] as Values | Values[] | undefined;
  if (value === undefined) return [];
  return Array.isArray(value) ? value.map((each, i) => [`${jsonName}[${i}]`, each]) : [[jsonName, value]];
}

function normalise(values: Values, { localName }: DescField): void {
  const value = values[localName];
  if (typeof value === "string") values[localName] = normalizedName(value);
  else if (Array.isArray(value)) values[localName] = value.map(normalizedName);
}

function brokenName(name: string, path: string): Broken[] {
  return rules.flatMap(([wrong, rule]) => (wrong.test(name) ? [{ path, rule, id: FieldRule.NAME }] : []));
}
