import { type DescMessage, type DescMethod, fromBinary, hasOption, type Registry } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { status_override } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { optionOf } from "../proto-option.ts";
import type { MessageValues } from "./json/values.ts";
import type { JsonWriter } from "./json/write-json.ts";
import { typedJson } from "./json/write-known.ts";

/** The statuses that an RPC declares to differ, by code. */
export function statusOverrides(method: DescMethod): ReadonlyMap<number, number> {
  if (!hasOption(method, status_override)) return new Map();
  return new Map(optionOf(method, status_override).map(({ code, httpStatus }) => [code, httpStatus]));
}

/** The one form of errors: `{"code": …, "message": …, "details": […]}`. */
export function errorJson(code: number, message: string, details: readonly unknown[] = []): string {
  return JSON.stringify({ code, message, details });
}

/** The same for an error with details. */
export function errorText(error: ConnectError, registry: Registry, writer: JsonWriter): string {
  const details = error.details.map((detail) => {
    const name = "desc" in detail ? detail.desc.typeName : detail.type;
    try {
      if ("desc" in detail) return detailJson(detail.desc, detail.value as MessageValues, writer);
      const desc = registry.getMessage(detail.type);
      if (desc !== undefined)
        return detailJson(desc, fromBinary(desc, detail.value) as unknown as MessageValues, writer);
    } catch {
      // Its bytes are broken, or hold what JSON cannot: the error is answered all the same.
    }
    // A detail of a type that is not known here, or that cannot be written, keeps its name.
    return { "@type": `type.googleapis.com/${name}` };
  });
  return errorJson(error.code, error.rawMessage, details);
}

function detailJson(desc: DescMessage, message: MessageValues, writer: JsonWriter): unknown {
  return typedJson(`type.googleapis.com/${desc.typeName}`, desc, message, writer);
}
