import { create, type DescField, type Message } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { routes } from "#gen/routes.ts";
import { validateRequest } from "../../src/rpc/validate.ts";

const isName = (field: DescField) => field.name === "name" && field.fieldKind === "scalar";
const methods = [...new Set(routes.map(({ method }) => method))].filter(({ name }) => name.startsWith("Create"));

/** Every place of a name that an RPC gives to something new, with a request that holds this one there. */
const places = methods.flatMap((method) => {
  const own = method.input.fields.filter(isName).map(() => ({
    method,
    path: "name",
    make: (name: string) => create(method.input, { name } as never) as Message,
  }));
  const inner = method.input.fields.flatMap((field) => {
    if (field.fieldKind !== "message" || !field.message.fields.some(isName)) return [];
    const make = (name: string) => create(method.input, { [field.localName]: { name } } as never) as Message;
    return [{ method, path: `${field.jsonName}.name`, make }];
  });
  return [...own, ...inner];
});

function brokenAt(place: (typeof places)[number], name: string): string[] {
  try {
    validateRequest(place.method)(place.make(name));
    return [];
  } catch (error) {
    const { message } = error as Error;
    return message.split("; ").filter((each) => each.includes(`${place.path}: must not`));
  }
}

test("there are RPCs that give names", () => {
  expect(places.length).toBeGreaterThan(8);
});

describe.each(places.map((place) => ({ ...place, title: `${place.method.name} ${place.path}` })))("$title", (place) => {
  test.each([
    ["a\u200bb", "without width"],
    ["a\u202eb", "direction"],
    ["\ufeffa", "without width"],
    ["a\u2028b", "line breaks"],
    [" a", "begin or end with a space"],
    ["a\u00a0", "begin or end with a space"],
  ])("%j is refused", (name, rule) => {
    expect(brokenAt(place, name).join()).toContain(rule);
  });

  test("a name of any script is taken, in form NFC", () => {
    expect(brokenAt(place, "Ämter 東京 – 1")).toEqual([]);
    const request = place.make("A\u0308");
    try {
      validateRequest(place.method)(request);
    } catch {
      // Other members are missing.
    }
    expect(JSON.stringify(request, (_key, value) => (typeof value === "bigint" ? String(value) : value))).toContain(
      '"Ä"',
    );
  });
});
