import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { MessageValues } from "./json/values.ts";

/** Whether a message is google.api.HttpBody, whose bytes pass as they are. */
export function isHttpBody(desc: DescMessage | undefined): boolean {
  return desc?.typeName === "google.api.HttpBody";
}

/** Whether a field holds one google.api.HttpBody. */
export function holdsHttpBody(field: DescField | undefined): boolean {
  return field?.fieldKind === "message" && isHttpBody(field.message);
}

/** Fills google.api.HttpBody from a request. */
export function fillHttpBody(message: MessageValues, contentType: string | undefined, data: Uint8Array): MessageValues {
  message.contentType = contentType ?? "";
  message.data = data;
  return message;
}

/** The content type and the bytes of google.api.HttpBody; no type is the octet stream. */
export function httpBodyParts(message: unknown): { contentType: string; data: Uint8Array } {
  const { contentType, data } = (message ?? {}) as { contentType?: string; data?: Uint8Array };
  const type =
    contentType === undefined || !/^[\x20-\x7e]+$/.test(contentType) ? "application/octet-stream" : contentType;
  return { contentType: type, data: data ?? new Uint8Array() };
}
