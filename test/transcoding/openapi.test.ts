import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonWriter } from "../../src/transcoding/json/write-json.ts";
import { openApi } from "../../src/transcoding/plugin/openapi.ts";
import { bindRoutes } from "../../src/transcoding/routes/binding.ts";
import { anyMessage } from "./messages.ts";
import { foreign, foreignMessage, libraryService } from "./schema.ts";

// biome-ignore lint/suspicious/noExplicitAny: the tests walk documents of many shapes
type Json = any;

const own: Json = JSON.parse(readFileSync(new URL("../../gen/openapi.json", import.meta.url), "utf8"));
const library: Json = openApi(bindRoutes([libraryService()]).routes, { title: "Library", version: "1", keyHeader: "" });

function operations(document: Json): { path: string; verb: string; operation: Json }[] {
  return Object.entries(document.paths as Record<string, Json>).flatMap(([path, verbs]) =>
    Object.entries(verbs as Record<string, Json>).map(([verb, operation]) => ({ path, verb, operation })),
  );
}

describe.each([
  ["ours", own],
  ["the library's", library],
])("the document, %s,", (_name, document: Json) => {
  test("has each operation once, with the parameters that its path names", () => {
    const all = operations(document);
    expect(all.length).toBeGreaterThan(15);
    const ids = all.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { path, operation } of all) {
      const named = [...path.matchAll(/\{([^}]*)\}/g)].map(([, name]) => name).sort();
      const declared = (operation.parameters ?? [])
        .filter((one: Json) => one.in === "path")
        .map((one: Json) => one.name);
      expect(declared.sort(), path).toEqual(named);
    }
    // Paths that differ in the names of their variables alone are one path.
    const shapes = Object.keys(document.paths).map((path) => path.replace(/\{[^}]*\}/g, "{}"));
    expect(new Set(shapes).size).toBe(shapes.length);
  });

  test("refers to nothing that it does not have", () => {
    for (const [, name = ""] of JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]*)"/g)) {
      expect(document.components.schemas).toHaveProperty([name]);
    }
  });
});

test("status overrides, constraints and comments of the proto files are in it", () => {
  const remove = own.paths["/v1/notification/triggers/{name}"].delete;
  expect(Object.keys(remove.responses)).toEqual(["200", "412", "default"]);
  expect(remove.summary).toBe("Deletes a trigger that no rule uses.");
  const event = own.components.schemas["belfry.receiver.v1.Event"];
  expect(event.properties.name).toMatchObject({ minLength: 1, maxLength: 255 });
  expect(event.properties.dimensions).toMatchObject({ maxProperties: 64, propertyNames: { minLength: 1 } });
  expect(event.required).toContain("timestamp");
  expect(own.components.securitySchemes.key).toEqual({ type: "apiKey", in: "header", name: "service-api-key" });
});

test("path, query, body and answer of each binding form are described", () => {
  const { paths } = library;
  expect(paths["/v1/{name}"].get.parameters[0].description).toContain("shelves/*/books/*");
  expect(paths["/v1/{name}"].patch.requestBody.content["application/json"].schema.$ref).toMatch(/foreign\.v1\.Book$/);
  const list = paths["/v1/shelves/{shelf}/books"].get.parameters.map((one: Json) => one.name);
  expect(list).toEqual(["shelf", "pageSize", "pageToken", "tags", "author.givenName", "author.familyName", "inPrint"]);
  expect(paths["/v1/echo/list"].put.requestBody.content["application/json"].schema).toEqual({
    type: "array",
    items: { type: "string" },
  });
  const query = paths["/v1/echo"].get.parameters.find((one: Json) => one.name === "mStringString");
  expect(query).toMatchObject({ style: "deepObject", schema: { additionalProperties: { type: "string" } } });
  expect(Object.keys(paths["/v1/books:watch"].get.responses[200].content)).toEqual([
    "application/x-ndjson",
    "text/event-stream",
  ]);
  expect(Object.keys(paths["/v1/raw"].post.requestBody.content)).toEqual(["*/*"]);
});

test("any message's JSON is as its schema says", () => {
  const writer = jsonWriter(foreign);
  for (const name of ["Everything", "Clause", "Book"]) {
    const desc = foreignMessage(name);
    fc.assert(
      fc.property(anyMessage(desc, 1), (message) => {
        const json = JSON.parse(JSON.stringify(writer.message(desc)(message as never)));
        expect(wrong(json, { $ref: `#/components/schemas/foreign.v1.${name}` }, name)).toEqual([]);
      }),
      { numRuns: 500 },
    );
  }
});

/** Where a value breaks a schema, as far as this document uses JSON Schema. */
function wrong(value: Json, schema: Json, path: string): string[] {
  if (schema.$ref !== undefined) return wrong(value, library.components.schemas[schema.$ref.split("/").at(-1)], path);
  if (schema.anyOf !== undefined) {
    const outcomes: string[][] = schema.anyOf.map((one: Json) => wrong(value, one, path));
    return outcomes.some((outcome) => outcome.length === 0) ? [] : outcomes.flat();
  }
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  const types = [schema.type ?? type].flat().map((one: string) => (one === "integer" ? "number" : one));
  // NaN and the infinities are strings; an unknown number of an enum stands for itself.
  if ([schema.type].flat().includes("number") && type === "string") return [];
  if (schema.enum !== undefined) return schema.enum.includes(value) || type === "number" ? [] : [`${path}: ${value}`];
  if (!types.includes(type)) return [`${path}: ${type} is not ${types}`];
  if (schema.pattern !== undefined && type === "string" && !new RegExp(schema.pattern, "u").test(value))
    return [`${path}: ${value}`];
  if (type === "array" && schema.items !== undefined)
    return value.flatMap((item: Json, i: number) => wrong(item, schema.items, `${path}[${i}]`));
  if (type !== "object") return [];
  return Object.entries(value).flatMap(([key, member]) => {
    const inner = Object.hasOwn(schema.properties ?? {}, key) ? schema.properties[key] : schema.additionalProperties;
    if (inner === undefined) return schema.properties === undefined ? [] : [`${path}: unknown ${key}`];
    return inner === true ? [] : wrong(member, inner, `${path}.${key}`);
  });
}
