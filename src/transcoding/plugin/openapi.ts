import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { update_mask } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { statusOverrides } from "../error-text.ts";
import { holdsHttpBody, isHttpBody } from "../http-body.ts";
import { fieldNamed, type Route } from "../routes/binding.ts";
import { MANY } from "../routes/template.ts";
import { findTarget } from "../url/target.ts";
import { commentOf, type JsonSchema, schemas } from "./json-schema.ts";

/** What the proto files do not say about an API. */
export interface OpenApiOptions {
  readonly title: string;
  readonly version: string;
  /** The request header that carries the key, if each call needs one. */
  readonly keyHeader: string;
}

const errorSchema: JsonSchema = {
  type: "object",
  description: "What is wrong, by gRPC code.",
  properties: {
    code: {
      type: "integer",
      description: "The gRPC code: 3 for a wrong argument, 5 for a missing thing, 16 for a wrong key.",
    },
    message: { type: "string" },
    details: {
      type: "array",
      items: { type: "object", properties: { "@type": { type: "string" } }, additionalProperties: true },
    },
  },
  required: ["code", "message", "details"],
};
const errorResponse = (description: string): JsonSchema => ({
  description,
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
});
// OpenAPI knows no other methods.
const knownVerbs = new Set(["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"]);
const depthMax = 3;

/** The OpenAPI 3.1 document of a table of routes. */
export function openApi(routes: readonly Route[], { title, version, keyHeader }: OpenApiOptions): JsonSchema {
  const { refer, value, all } = schemas();
  const paths: Record<string, Record<string, JsonSchema>> = {};
  const names = new Map<string, string[]>();
  const ids = new Map<string, number>();
  for (const route of routes) {
    if (!knownVerbs.has(route.verb)) continue;
    const { path, variables } = pathOf(route);
    paths[path] ??= {};
    paths[path][route.verb.toLowerCase()] = operation(route, variables);
  }
  const tags = [...new Set(routes.map(({ method }) => method.parent))];
  return {
    openapi: "3.1.0",
    info: { title, version },
    tags: tags.map((service) => ({ name: service.name, description: commentOf(service) })),
    paths,
    components: {
      schemas: { Error: errorSchema, ...Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1))) },
      ...(keyHeader === "" ? {} : { securitySchemes: { key: { type: "apiKey", in: "header", name: keyHeader } } }),
    },
    ...(keyHeader === "" ? {} : { security: [{ key: [] }] }),
  };

  /** The path in OpenAPI's form. Paths of one shape share the names of their variables, as OpenAPI asks. */
  function pathOf({ segments, custom, variables }: Route): { path: string; variables: string[] } {
    const shape = JSON.stringify([segments, custom]);
    const known = names.get(shape) ?? variables.map(({ path }) => path.at(-1) as string);
    names.set(shape, known);
    const parts: string[] = [];
    for (let i = 0; i < segments.length; i++) {
      const at = variables.findIndex(({ start }) => start === i);
      const variable = variables[at];
      if (variable === undefined) parts.push(typeof segments[i] === "string" ? (segments[i] as string) : "*");
      else {
        parts.push(`{${known[at]}}`);
        i = variable.end === -1 ? segments.length : variable.end - 1;
      }
    }
    return { path: `/${parts.join("/")}${custom === "" ? "" : `:${custom}`}`, variables: known };
  }

  function operation(route: Route, variables: readonly string[]): JsonSchema {
    const { method } = route;
    const comment = commentOf(method);
    const id = `${method.parent.name}_${method.name}`;
    const count = (ids.get(id) ?? 0) + 1;
    ids.set(id, count);
    const parameters = [...pathParameters(route, variables), ...queryParameters(route)];
    const overrides = [...statusOverrides(method)].map(([code, status]) => [
      String(status),
      errorResponse(`An error of code ${code}.`),
    ]);
    return {
      operationId: count === 1 ? id : `${id}_${count}`,
      tags: [method.parent.name],
      ...(comment === ""
        ? {}
        : { summary: /^[^\n]*?[.](?=\s|$)/.exec(comment)?.[0] ?? comment.split("\n")[0], description: comment }),
      ...(parameters.length === 0 ? {} : { parameters }),
      ...(route.body === "" ? {} : { requestBody: { content: requestContent(route) } }),
      responses: {
        200: { description: commentOf(method.output) || "The answer.", content: responseContent(route) },
        ...Object.fromEntries(overrides),
        default: errorResponse("An error."),
      },
      ...(method.deprecated ? { deprecated: true } : {}),
    };
  }

  function pathParameters(route: Route, variables: readonly string[]): JsonSchema[] {
    return route.variables.map(({ path, end, start }, i) => {
      const target = findTarget(route.method.input, path);
      const field = "lacking" in target ? undefined : target.fields.at(-1);
      const pattern = route.segments.slice(start, end === -1 ? undefined : end);
      const many = pattern.length > 1 || pattern[0] === MANY;
      const form = pattern.map((segment) => (typeof segment === "string" ? segment : segment === MANY ? "**" : "*"));
      const comment = field === undefined ? "" : commentOf(field);
      return {
        name: variables[i],
        in: "path",
        required: true,
        ...describe(many ? `${comment}\nSeveral segments: ${form.join("/")}.`.trim() : comment),
        schema: field === undefined ? { type: "string" } : value(field),
      };
    });
  }

  function queryParameters(route: Route): JsonSchema[] {
    const { input } = route.method;
    const taken = new Set([route.body, ...route.variables.map(({ path }) => path.join("."))]);
    if (route.body === "*") {
      const mask = getOption(route.method, update_mask);
      for (const { name } of input.fields) if (name !== mask) taken.add(name);
    }
    return parametersOf(input, [], taken);
  }

  function parametersOf(message: DescMessage, above: DescField[], taken: ReadonlySet<string>): JsonSchema[] {
    return message.fields.flatMap((field): JsonSchema[] => {
      const way = [...above, field];
      if (taken.has(way.map(({ name }) => name).join("."))) return [];
      const name = way.map(({ jsonName }) => jsonName).join(".");
      const target = findTarget(message, [field.name]);
      if (!("lacking" in target) && target.read !== undefined && !(field.fieldKind === "map" && field.message)) {
        const style = field.fieldKind === "map" ? { style: "deepObject", explode: true } : {};
        return [{ name, in: "query", ...describe(commentOf(field)), ...style, schema: value(field) }];
      }
      const inner = field.fieldKind === "message" && !hasCustomJsonRepresentation(field.message);
      return inner && way.length < depthMax ? parametersOf(field.message, way, taken) : [];
    });
  }

  function requestContent({ method, body }: Route): JsonSchema {
    const streamed = method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming";
    if (body === "*") return isHttpBody(method.input) ? anyBytes : jsonContent(refer(method.input), streamed);
    const field = fieldNamed(method.input, body) as DescField;
    return holdsHttpBody(field) ? anyBytes : jsonContent(value(field), false);
  }

  function responseContent({ method, responseBody }: Route): JsonSchema {
    const field = responseBody === "" ? undefined : fieldNamed(method.output, responseBody);
    if (field === undefined ? isHttpBody(method.output) : holdsHttpBody(field)) return anyBytes;
    const schema = field === undefined ? refer(method.output) : value(field);
    if (method.methodKind === "unary" || method.methodKind === "client_streaming") return jsonContent(schema, false);
    const error = { $ref: "#/components/schemas/Error" };
    const record = { oneOf: [wrapped("result", schema), wrapped("error", error)] };
    return { "application/x-ndjson": { schema: record }, "text/event-stream": { schema: record } };
  }
}

const anyBytes: JsonSchema = { "*/*": { schema: { type: "string", contentMediaType: "application/octet-stream" } } };

function jsonContent(schema: JsonSchema, streamed: boolean): JsonSchema {
  return { [streamed ? "application/x-ndjson" : "application/json"]: { schema } };
}

function wrapped(key: string, schema: JsonSchema): JsonSchema {
  return { type: "object", properties: { [key]: schema }, required: [key] };
}

function describe(description: string): JsonSchema {
  return description === "" ? {} : { description };
}
