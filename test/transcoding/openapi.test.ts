import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openApiDocument } from "../../scripts/transcoding/openapi.ts";
import { jsonWriter } from "../../src/transcoding/json/write-json.ts";
import { bindRoutes } from "../../src/transcoding/routes/binding.ts";
import { cases } from "../support/cases.ts";
import { anyMessage } from "./messages.ts";
import { foreign, foreignMessage, libraryService } from "./schema.ts";

// biome-ignore lint/suspicious/noExplicitAny: the tests walk documents of many shapes
type Json = any;

const own: Json = JSON.parse(readFileSync(new URL("../../gen/openapi.json", import.meta.url), "utf8"));
const library: Json = openApiDocument(bindRoutes([libraryService()]).routes, {
  title: "Library",
  version: "1",
  keyHeader: "",
});

const ajv = new Ajv2020({ strict: false, validateFormats: false });
// Beyond what a server should send: NaN and the infinities are strings, an unknown number of an enum stands for itself.
const components: Json = JSON.parse(JSON.stringify(library.components), (_key, value) => {
  if (Array.isArray(value?.enum)) return { anyOf: [value, { type: "number" }] };
  return [value?.type].flat().includes("number")
    ? { anyOf: [value, { enum: ["NaN", "Infinity", "-Infinity"] }] }
    : value;
});

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
  expect(Object.keys(remove.responses)).toEqual("200 400 401 403 404 409 412 429 500 503 504 default".split(" "));
  expect(described(remove.responses[412])).toBe(
    "Code 9: The request conflicts with the state of things. Other operations answer 400.",
  );
  const list = own.paths["/v1/credentials"].get;
  expect(Object.keys(list.responses)).not.toContain("401");
  expect(described(list.responses[500])).toMatch(/Code 3.*400\.\n\nCode 13.*\n\nCode 16.*401\./s);
  expect(remove.summary).toBe("Deletes a trigger that no rule uses");
  const event = own.components.schemas.ReceiverEventInput;
  expect(event.properties.name).toMatchObject({ minLength: 1, maxLength: 255 });
  expect(event.properties.dimensions).toMatchObject({ maxProperties: 64, propertyNames: { minLength: 1 } });
  expect(event.required).toEqual(["timestamp", "name", "dimensions"]);
  expect(event.additionalProperties).toBe(false);
  expect(own.components.securitySchemes.key).toMatchObject({ type: "apiKey", in: "header", name: "service-api-key" });
});

function described(response: Json): string {
  return own.components.responses[response.$ref.split("/").at(-1)].description;
}

test("a message has the forms in which it is sent, is in answers, and is changed", () => {
  const { schemas } = own.components;
  // Answers hold every member, and no secret; requests need those that are required, and take numbers for strings.
  expect(schemas.UserAccount.required).toEqual(
    "createdAt createdBy email firstName groups id lastName updatedAt".split(" "),
  );
  expect(schemas.UserAccount.properties).not.toHaveProperty("password");
  expect(schemas.UserAccount.properties.createdAt.type).toEqual(["string", "null"]);
  expect(schemas.UserAccountInput.required).toEqual(["email", "password"]);
  expect(schemas.UserAccountInput.properties.id.readOnly).toBe(true);
  expect(schemas.UserAccountUpdate.required).toBeUndefined();
  expect(schemas.Rule.properties.delaySec.type).toBe("string");
  expect(schemas.RuleInput.properties.delaySec).toMatchObject({ type: ["string", "integer"], maximum: 86400 });
  expect(schemas.RuleInput.required).toEqual(["name"]);
  expect(schemas.UpdateRuleBody.required).toBeUndefined();
  expect(schemas.ReplaceDestinationBody.required).toEqual(["type"]);
  expect(schemas.TriggerTypeInput).toMatchObject({ minProperties: 1, maxProperties: 1 });
  expect(schemas.PreviewRuleBody.oneOf).toEqual([{ required: ["eventId"] }, { required: ["event"] }]);
  expect(schemas.Occurrence.required).toEqual(
    "id eventId dimensions metadataFields coreProperties annotations".split(" "),
  );
});

test("path, query, body and answer of each binding form are described", () => {
  const { paths } = library;
  expect(paths["/v1/{name}"].get.parameters[0].schema.pattern).toBe("^shelves/[^/]+/books/[^/]+$");
  const change = paths["/v1/{name}"].patch.requestBody.content["application/json"].schema.$ref;
  expect(change).toBe("#/components/schemas/UpdateBookBody");
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
    const valid = ajv.compile({ ...components.schemas[name], components });
    const wrong = (json: Json) => (valid(json) ? [] : valid.errors);
    fc.assert(
      fc.property(anyMessage(desc, 1), (message) => {
        const json = JSON.parse(JSON.stringify(writer.message(desc)(message as never)));
        expect(wrong(json)).toEqual([]);
      }),
      { numRuns: cases(500) },
    );
  }
});
