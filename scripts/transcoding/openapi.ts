import type { DescField } from "@bufbuild/protobuf";
import { holdsHttpBody, isHttpBody } from "../../src/transcoding/http-body.ts";
import { fieldNamed, type Route } from "../../src/transcoding/routes/binding.ts";
import { errorResponses, errorSchema } from "./error-responses.ts";
import type { JsonSchema } from "./forms.ts";
import { type Schemas, schemas } from "./json-schema.ts";
import { namesOf } from "./names.ts";
import { parametersOf } from "./parameters.ts";
import { pathNames } from "./paths.ts";
import type { Example } from "./texts.ts";
import { commentOf, summaryOf } from "./texts.ts";

/** What the proto files do not say about an API. */
export interface OpenApiOptions {
  readonly title: string;
  readonly version: string;
  /** The request header that carries the key, if each call needs one. */
  readonly keyHeader: string;
  /** Markdown that stands before all operations. */
  readonly introduction?: string;
  /** The licence, as SPDX names it. */
  readonly license?: string;
  /** The services by their names, in order, with titles for people; services that are not named follow. */
  readonly titles?: ReadonlyMap<string, string>;
  /** By RPC. Empty: the document has no examples; else every operation needs one. */
  readonly examples?: ReadonlyMap<string, Example>;
  /** Says in a sentence which keys may call an RPC. */
  readonly callers?: (method: Route["method"]) => string;
  /** Whether an RPC takes no key. */
  readonly keyless?: (method: Route["method"]) => boolean;
}

// OpenAPI knows no other methods.
const knownVerbs = new Set(["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"]);

/** The OpenAPI 3.1 document of a table of routes. @throws Error when an operation lacks its example. */
export function openApiDocument(routes: readonly Route[], options: OpenApiOptions): JsonSchema {
  const { title, version, keyHeader, introduction = "", license, titles = new Map(), examples = new Map() } = options;
  const listed = routes.filter(({ verb }) => knownVerbs.has(verb));
  const made = schemas(namesOf(listed));
  const { requestBody, responseContent } = contentsOf(made);
  const errors = errorResponses(keyHeader !== "");
  const pathName = pathNames();
  const paths: Record<string, Record<string, JsonSchema>> = {};
  const ids = new Map<string, number>();
  for (const route of inOrder(listed, [...titles.keys()])) {
    const { path, variables } = pathName(route);
    paths[path] ??= {};
    paths[path][route.verb.toLowerCase()] = operation(route, variables);
  }
  const services = [...new Set(inOrder(listed, [...titles.keys()]).map(({ method }) => method.parent))];
  return {
    openapi: "3.1.0",
    info: {
      title,
      version,
      ...(introduction === "" ? {} : { description: introduction }),
      ...(license === undefined ? {} : { license: { name: license, identifier: license } }),
    },
    servers: [{ url: "/", description: "The server that answers this document." }],
    ...(keyHeader === "" ? {} : { security: [{ key: [] }, { bearer: [] }] }),
    tags: services.map((service) => ({ name: tagOf(service.name), description: commentOf(service) })),
    paths,
    components: {
      schemas: { Error: errorSchema, ...byName(made.all) },
      responses: byName(errors.all),
      ...(keyHeader === "" ? {} : { securitySchemes: securitySchemes(keyHeader) }),
    },
  };

  function tagOf(service: string): string {
    return titles.get(service) ?? service;
  }

  function operation(route: Route, variables: readonly string[]): JsonSchema {
    const { method } = route;
    const rpc = `${method.parent.name}/${method.name}`;
    const example = examples.get(rpc);
    if (examples.size > 0 && example === undefined) throw new Error(`${rpc} has no example`);
    const comment = [commentOf(method), options.callers?.(method) ?? ""].filter((text) => text !== "").join("\n\n");
    const id = `${method.parent.name}_${method.name}`;
    const count = (ids.get(id) ?? 0) + 1;
    ids.set(id, count);
    const parameters = parametersOf(route, variables, made, example);
    return {
      operationId: count === 1 ? id : `${id}_${count}`,
      tags: [tagOf(method.parent.name)],
      ...(comment === "" ? {} : { summary: summaryOf(comment), description: comment }),
      ...(options.keyless?.(method) ? { security: [] } : {}),
      ...(parameters.length === 0 ? {} : { parameters }),
      ...(route.body === "" ? {} : { requestBody: requestBody(route, example) }),
      responses: {
        200: {
          description: commentOf(method.output) || "The answer.",
          content: withExample(responseContent(route), example?.answer),
        },
        ...errors.of(route),
      },
      ...(method.deprecated ? { deprecated: true } : {}),
    };
  }
}

/** What the bodies of a route's requests and answers hold, by content type. */
function contentsOf(made: Schemas) {
  return { requestBody, responseContent };

  function requestBody(route: Route, example?: Example): JsonSchema {
    const content = requestContent(route);
    // An empty body is an empty message.
    const needed = ["required", "oneOf", "minProperties"].some((word) => word in bodySchema(content));
    return { ...(needed ? { required: true } : {}), content: withExample(content, example?.body) };
  }

  function bodySchema(content: JsonSchema): JsonSchema {
    const { schema } = (content["application/json"] ?? {}) as { schema?: { $ref?: string } };
    return made.all[schema?.$ref?.split("/").at(-1) ?? ""] ?? {};
  }

  function requestContent(route: Route): JsonSchema {
    const { method, body } = route;
    if (body === "*") return isHttpBody(method.input) ? anyBytes : jsonContent(made.body(route));
    const field = fieldNamed(method.input, body) as DescField;
    return holdsHttpBody(field) ? anyBytes : jsonContent(made.body(route));
  }

  function responseContent({ method, responseBody }: Route): JsonSchema {
    const field = responseBody === "" ? undefined : fieldNamed(method.output, responseBody);
    if (field === undefined ? isHttpBody(method.output) : holdsHttpBody(field)) return anyBytes;
    const schema = field === undefined ? made.refer(method.output, "answer") : made.value(field, "answer");
    if (method.methodKind === "unary") return jsonContent(schema);
    const error = { $ref: "#/components/schemas/Error" };
    const record = {
      description: "One record: in NDJSON a line each, in SSE the data of one event each.",
      oneOf: [wrapped("result", schema), wrapped("error", error)],
    };
    return { "application/x-ndjson": { schema: record }, "text/event-stream": { schema: record } };
  }
}

const securitySchemes = (keyHeader: string) => ({
  bearer: { type: "http", scheme: "bearer", description: "The same key, as many tools send it." },
  key: { type: "apiKey", in: "header", name: keyHeader, description: "The key of an API client." },
});

function byName<T>(all: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The routes of the services named, in that order, then all others as they come. */
function inOrder(routes: readonly Route[], services: readonly string[]): Route[] {
  const placeOf = ({ method }: Route) => {
    const place = services.indexOf(method.parent.name);
    return place === -1 ? services.length : place;
  };
  return [...routes].sort((a, b) => placeOf(a) - placeOf(b));
}

const anyBytes: JsonSchema = { "*/*": { schema: { type: "string", contentMediaType: "application/octet-stream" } } };

function jsonContent(schema: JsonSchema): JsonSchema {
  return { "application/json": { schema } };
}

function withExample(content: JsonSchema, example: unknown): JsonSchema {
  if (example === undefined) return content;
  return Object.fromEntries(Object.entries(content).map(([type, media]) => [type, { ...(media as object), example }]));
}

function wrapped(key: string, schema: JsonSchema): JsonSchema {
  return { type: "object", properties: { [key]: schema }, required: [key] };
}
