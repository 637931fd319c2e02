import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { statusOverrides } from "../../src/transcoding/error-text.ts";
import type { Route } from "../../src/transcoding/routes/binding.ts";
import { httpStatus } from "../../src/wire/status.ts";
import type { JsonSchema } from "./forms.ts";

/** The form of all errors. */
export const errorSchema: JsonSchema = {
  type: "object",
  description: "What is wrong.",
  properties: {
    code: {
      type: "integer",
      description:
        "The gRPC code: 1 cancelled, 3 invalid argument, 4 deadline exceeded, 5 not found, 6 already exists, 7 permission denied, 8 resource exhausted, 9 failed precondition, 10 aborted, 12 unimplemented, 13 internal, 14 unavailable, 16 unauthenticated.",
    },
    message: { type: "string", description: "What is wrong, for people." },
    details: {
      type: "array",
      description:
        "More for programs, by type: google.rpc.BadRequest names each wrong field, ResourceInfo the thing that was looked for, RetryInfo how long to wait.",
      items: {
        type: "object",
        properties: { "@type": { type: "string" } },
        required: ["@type"],
        additionalProperties: true,
      },
    },
  },
  required: ["code", "message", "details"],
};

const meanings: Readonly<Record<number, string>> = {
  3: "A value of the request breaks a rule, or the request cannot be read; `details` name the fields.",
  4: "The deadline has passed.",
  5: "The thing that the request names does not exist.",
  6: "The name is taken.",
  7: "The key is good, but its client may not make this call.",
  8: "A bound of the server is reached; send again after the time in `Retry-After`.",
  9: "The request conflicts with the state of things.",
  10: "A change at the same time was in the way; send again.",
  13: "A fault of the server; the log has more, by the request id in the message.",
  14: "The server cannot answer now; send again.",
  16: "The key is missing or not valid.",
};

/** Describes the errors of operations, each response once in `components.responses`. */
export function errorResponses(guarded: boolean) {
  const all: Record<string, JsonSchema> = {};
  return { of, all };

  /** The errors of a route by HTTP status, its own statuses among them. */
  function of(route: Route): Record<string, JsonSchema> {
    const byStatus = [...textsOf(route, guarded), ["default", "Another error, in the same form."] as const];
    return Object.fromEntries(byStatus.map(([status, text]) => [status, refer(status, response(text))]));
  }

  function refer(status: string, made: JsonSchema): JsonSchema {
    const base = status === "default" ? "OtherError" : `Error${status}`;
    let name = base;
    // The same status may have several causes.
    for (let i = 2; all[name] !== undefined && all[name]?.description !== made.description; i++) name = `${base}_${i}`;
    all[name] = made;
    return { $ref: `#/components/responses/${name}` };
  }
}

/** What each HTTP status means, in order. */
function textsOf(route: Route, guarded: boolean): [status: string, text: string][] {
  const { method } = route;
  const overrides = statusOverrides(method);
  const byStatus = new Map<number, string[]>();
  const note = (status: number, text: string) => byStatus.set(status, [...(byStatus.get(status) ?? []), text]);
  for (const code of [...new Set([...codesOf(route, guarded), ...overrides.keys()])].sort((a, b) => a - b)) {
    const usual = httpStatus(code);
    const status = overrides.get(code) ?? usual;
    const instead = status === usual ? "" : ` Other operations answer ${usual}.`;
    note(status, `Code ${code}: ${meanings[code] ?? "an error."}${instead}`);
  }
  if (route.body !== "") {
    note(413, "Code 8: The body is too large.");
    note(415, "Code 3: The content type or encoding of the body is not read.");
  }
  return [...byStatus].sort(([a], [b]) => a - b).map(([status, texts]) => [String(status), texts.join("\n\n")]);
}

function codesOf({ method, variables }: Route, guarded: boolean): number[] {
  const codes = [3, 4, 8, 13, 14];
  if (guarded) codes.push(7, 16);
  if (variables.length > 0) codes.push(5);
  // The names of RPCs say what they do; what changes something may meet another change.
  if (!onlyReads(method)) codes.push(9, 10);
  if (/^(?:Create|Update|Replace)/.test(method.name)) codes.push(6);
  return codes;
}

/** Whether an RPC declares that it changes nothing. */
function onlyReads({ idempotency }: DescMethod): boolean {
  return idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

function response(description: string): JsonSchema {
  return { description, content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } } };
}
