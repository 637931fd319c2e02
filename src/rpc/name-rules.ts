import { type DescField, type DescMethod, type Message, ScalarType } from "@bufbuild/protobuf";
import { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import { permissionOf } from "../auth/permission.ts";
import type { Broken } from "./rules.ts";

/**
 * The one rule for names by which things are told apart: equal ones look equal. They are stored in Unicode's form NFC, and
 * hold no control characters, none without width, none that turn the direction of a text, and no space at their ends.
 */
const rules: readonly [RegExp, string][] = [
  [/[\p{Cc}\p{Zl}\p{Zp}]/u, "must not contain control characters or line breaks"],
  [/[\p{Cf}\u115f\u1160\u3164\uffa0]/u, "must not contain characters without width, nor any of direction"],
  [/^\s|\s$/u, "must not begin or end with a space"],
];

type Values = Record<string, unknown>;

const isName = (field: DescField) =>
  field.name === "name" && field.fieldKind === "scalar" && field.scalar === ScalarType.STRING;

/** Brings the names in a request to form NFC, and answers the rules that a name breaks which it gives. */
export function nameRules(method: DescMethod): ((request: Message) => Broken[]) | undefined {
  if (permissionOf(method) === Permission.INGEST) return undefined; // what is measured is called as it is
  const gives = /^(Create|Replace|Update|Rename)/.test(method.name);
  const own = method.input.fields.find(isName);
  const resources = method.input.fields.filter(
    (field) => field.fieldKind === "message" && gives && field.message.fields.some(isName),
  );
  if (own === undefined && resources.length === 0) return undefined;
  return (request) => {
    const values = request as unknown as Values;
    const broken: Broken[] = [];
    normalise(values);
    const known = typeof values.name === "string" ? values.name : undefined;
    // What is called in the path is there already; a request of plain fields that creates names it there, too.
    if (own !== undefined && method.name.startsWith("Create")) broken.push(...brokenName(known ?? "", "name"));
    for (const { localName, jsonName } of resources) {
      const resource = values[localName] as Values | undefined;
      if (resource === undefined) continue;
      const name = normalise(resource);
      if (name !== known) broken.push(...brokenName(name, `${jsonName}.name`));
    }
    return broken;
  };
}

function normalise(values: Values): string {
  if (typeof values.name !== "string") return "";
  const name = values.name.normalize("NFC");
  if (name !== values.name) values.name = name;
  return name;
}

function brokenName(name: string, path: string): Broken[] {
  return rules.flatMap(([wrong, rule]) => (wrong.test(name) ? [{ path, rule }] : []));
}
