import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import {
  type Compression,
  compressionNegotiate,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import type { Pace } from "../event-loop.ts";
import { longFields } from "../wire/chunked-lists.ts";
import { compressBytesMin, envelopeOf, messageBytes } from "./message-writer.ts";

/** Content types of answers that are in envelopes, by their beginnings, and the headers that name their compression. */
const encodingHeaders = [
  ["application/grpc", "grpc-encoding"],
  ["application/connect+", "connect-content-encoding"],
] as const;
const largeKey = createContextKey<Message | undefined>(undefined);

/**
 * What Connect's handlers are given for an answer: the answer, or an empty one in place of a large one, which they would
 * write at once. `withLargeAnswer` writes it.
 */
export function standIn({ output }: DescMethod, answer: Message, values: ContextValues): Message {
  const whole = create(output, answer);
  if (longFields(output, whole as unknown as Record<string, unknown>).length === 0) return whole;
  values.set(largeKey, whole);
  return create(output);
}

/** The response with the large answer, made in slices, in place of the empty one. @throws what `pace` throws */
export async function withLargeAnswer(
  { output }: DescMethod,
  call: UniversalServerRequest,
  response: UniversalServerResponse,
  compressions: Compression[],
  pace: Pace,
): Promise<UniversalServerResponse> {
  const message = call.contextValues?.get(largeKey);
  if (message === undefined || response.status !== 200) return response;
  const header = new Headers(response.header);
  const type = header.get("content-type") ?? "";
  const data = await messageBytes(output, message, !type.endsWith("json"), pace);
  const envelopeEncoding = encodingHeaders.find(([start]) => type.startsWith(start))?.[1];
  if (envelopeEncoding !== undefined) {
    const chosen = compressions.find(({ name }) => name === header.get(envelopeEncoding)) ?? null;
    return { ...response, body: behindFirst(await envelopeOf(data, chosen), response.body) };
  }
  const accepted = call.header.get("accept-encoding");
  const { response: chosen } = compressionNegotiate(compressions, null, accepted, "accept-encoding");
  const packed = chosen === null || data.byteLength < compressBytesMin ? data : await chosen.compress(data);
  if (packed !== data && chosen !== null) header.set("content-encoding", chosen.name);
  header.set("content-length", String(packed.byteLength));
  return { ...response, header, body: behindFirst(packed, response.body) };
}

/** A body whose first piece, the empty answer, is another one. */
async function* behindFirst(
  first: Uint8Array,
  body: AsyncIterable<Uint8Array> | undefined,
): AsyncGenerator<Uint8Array> {
  let replaced = false;
  for await (const piece of body ?? []) {
    yield replaced ? piece : first;
    replaced = true;
  }
}
