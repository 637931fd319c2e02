import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { routes } from "#gen/routes.ts";
import { routeMatcher } from "../../src/transcoding/routes/match.ts";

const file = new URL("../../gen/openapi.json", import.meta.url);
// What an answer holds beyond its schema is a fault here; clients may meet newer servers, and are told nothing of it.
const closed = (_key: string, value: { properties?: object; additionalProperties?: unknown } | null) =>
  value?.properties !== undefined && value.additionalProperties === undefined
    ? { ...value, additionalProperties: false }
    : value;

let found: ReturnType<typeof open> | undefined;

function open() {
  const document = JSON.parse(readFileSync(file, "utf8"), closed);
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, "document");
  const places = new Map<string, string>();
  for (const [path, verbs] of Object.entries<Record<string, { operationId: string }>>(document.paths)) {
    for (const [verb, { operationId }] of Object.entries(verbs)) {
      places.set(operationId, ["", "paths", path.replaceAll("/", "~1"), verb].join("/"));
    }
  }
  return { ajv, places, match: routeMatcher(routes), compiled: new Map<string, ValidateFunction>() };
}

/** The same for a stream of records, each as it passes by. */
export function checkRecords(method: string, url: string, type: string): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let rest = "";
  return new TransformStream({
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        // Of server-sent events only those with data of their own are records.
        const record = type === "text/event-stream" ? /^data: (\{.+\})$/.exec(line)?.[1] : line;
        if (record) checkAnswer(method, url, 200, record, type);
      }
      controller.enqueue(chunk);
    },
  });
}

/**
 * Holds an answer of /v1 to the OpenAPI document: a success to the schema of its operation, an error to that of errors.
 * Paths that the document does not have are those of other servers. @throws Error that says where it differs.
 */
export function checkAnswer(
  method: string,
  url: string,
  status: number,
  text: string,
  type = "application/json",
): void {
  found ??= open();
  const { ajv, places, match, compiled } = found;
  const route = match.find(method, url);
  if (route === undefined || method === "HEAD") return;
  const place = places.get(`${route.method.parent.name}_${route.method.name}`);
  if (place === undefined) throw new Error(`${method} ${url} answers, and the OpenAPI document does not have it`);
  const success = `${place}/responses/200/content/${type.replaceAll("/", "~1")}/schema`;
  const schema = status === 200 ? success : "/components/schemas/Error";
  let valid = compiled.get(schema);
  if (valid === undefined) {
    valid = ajv.compile({ $ref: `document#${encodeURI(schema)}` });
    compiled.set(schema, valid);
  }
  if (valid(JSON.parse(text))) return;
  const wrong = valid.errors?.map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
  throw new Error(
    `${method} ${url} answered ${status} with what the OpenAPI document does not say: ${wrong?.join("; ")}`,
  );
}
