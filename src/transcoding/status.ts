import { type DescMessage, type DescMethod, fromBinary, getOption, hasOption, type Registry } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { status_override } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";
import type { Values } from "./values.ts";
import type { JsonWriter } from "./write-json.ts";
import { typedJson } from "./write-known.ts";

/** HTTP status by gRPC code. */
const statuses = [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401];

/** The HTTP status of a gRPC code, where neither the RPC nor the error says another. */
export function httpStatus(code: number): number {
  return statuses[code] ?? 500;
}

/** The statuses that an RPC declares to differ, by code. */
export function statusOverrides(method: DescMethod): ReadonlyMap<number, number> {
  if (!hasOption(method, status_override)) return new Map();
  return new Map(getOption(method, status_override).map(({ code, httpStatus }) => [code, httpStatus]));
}

const fixedStatus = new WeakMap<object, number>();

/** An error whose HTTP status no option of an RPC changes, such as 413 and 415. */
export function refusal(code: Code, status: number, message: string): ConnectError {
  const error = new ConnectError(message, code);
  fixedStatus.set(error, status);
  return error;
}

/** Code 3 about one field; `path` is its JSON path, `rule` reads on after it. `note` ends the message alone. */
export function invalidValue(path: string, rule: string, note = ""): ConnectError {
  return new ConnectError(`${path === "" ? rule : `${path}: ${rule}`}${note}`, Code.InvalidArgument, undefined, [
    { desc: BadRequestSchema, value: { fieldViolations: [{ field: path, description: rule }] } },
  ]);
}

/** Any thrown value as a ConnectError; what nobody foresaw becomes code 13 without a word of it, and is `reported`. */
export function asConnectError(thrown: unknown, report: (error: unknown) => void): ConnectError {
  if (thrown instanceof ConnectError) return thrown;
  if (thrown instanceof Error && thrown.name === "AbortError") return new ConnectError("cancelled", Code.Canceled);
  report(thrown);
  return new ConnectError("internal error", Code.Internal);
}

/** The HTTP status of an error of an RPC. */
export function errorStatus(error: ConnectError, overrides: ReadonlyMap<number, number>): number {
  return fixedStatus.get(error) ?? overrides.get(error.code) ?? httpStatus(error.code);
}

/** The text of `{"code": …, "message": …, "details": […]}`. */
export function errorText(error: ConnectError, registry: Registry, writer: JsonWriter): string {
  const details = error.details.map((detail) => {
    if ("desc" in detail) return detailJson(detail.desc, detail.value as Values, writer);
    const desc = registry.getMessage(detail.type);
    // A detail of a type that nobody here knows keeps its name.
    if (desc === undefined) return { "@type": `type.googleapis.com/${detail.type}` };
    return detailJson(desc, fromBinary(desc, detail.value) as unknown as Values, writer);
  });
  return JSON.stringify({ code: error.code, message: error.rawMessage, details });
}

function detailJson(desc: DescMessage, message: Values, writer: JsonWriter): unknown {
  return typedJson(`type.googleapis.com/${desc.typeName}`, desc, message, writer);
}
