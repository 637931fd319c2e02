import { create, type DescField, type Message } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { routes } from "#gen/routes.ts";
import { validateRequest } from "../../src/rpc/validate.ts";

const isName = (field: DescField) => field.name === "name" && field.fieldKind === "scalar";
const all = [...new Set(routes.map(({ method }) => method))];
const methods = all.filter(({ name }) => /^(Create|Replace|Update)/.test(name) && name !== "UpdateUserAccount");

/** Every place of a name that an RPC gives to something new, with a request that holds this one there. */
const places = methods.flatMap((method) => {
  const own = method.input.fields
    .filter((field) => isName(field) && method.name.startsWith("Create"))
    .map(() => ({
      method,
      path: "name",
      make: (name: string) => create(method.input, { name } as never) as Message,
    }));
  const inner = method.input.fields.flatMap((field) => {
    if (field.message === undefined || field.fieldKind === "map" || !field.message.fields.some(isName)) return [];
    const list = field.fieldKind === "list";
    const make = (name: string) =>
      create(method.input, { [field.localName]: list ? [{ name }] : { name } } as never) as Message;
    return [{ method, path: `${field.jsonName}${list ? "[0]" : ""}.name`, make }];
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

test("names of things that are there are looked for in form NFC, wherever a request holds them", () => {
  const references = all.flatMap((method) => {
    const found = method.input.fields.filter((field) => field.fieldKind === "list" && /(^|_)names$/.test(field.name));
    return found.map((field) => ({ method, field }));
  });
  expect(references.length).toBeGreaterThan(2);
  for (const { method, field } of references) {
    const request = create(method.input, { [field.localName]: ["A\u0308"] } as never) as Message;
    try {
      validateRequest(method)(request);
    } catch {
      // Other members are missing.
    }
    expect((request as unknown as Record<string, unknown>)[field.localName]).toEqual(["Ä"]);
  }
});
