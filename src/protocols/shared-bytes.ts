import { create, type DescMessage, type Message, toBinary, toJsonString } from "@bufbuild/protobuf";
import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { encodeEnvelope, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { formOf as formOfMessage } from "../wire/shared-messages.ts";
import { formOf } from "./framing.ts";

const bytesKey = createContextKey<Uint8Array[] | undefined>(undefined);

/**
 * What Connect's handlers are given for the messages of a stream: empty ones, which they encode for each client again.
 * `withStreamBytes` puts the bytes in their place, which are made once for all clients that are sent the same message.
 */
export async function* streamStandIns(
  output: DescMessage,
  messages: AsyncIterable<Message>,
  { requestHeader, values }: HandlerContext,
): AsyncGenerator<Message> {
  const binary = formOf(requestHeader.get("content-type") ?? "")?.binary === true;
  const encode = binary
    ? (message: Message) => toBinary(output, create(output, message))
    : (message: Message) => Buffer.from(toJsonString(output, create(output, message)));
  const bytes: Uint8Array[] = [];
  values.set(bytesKey, bytes);
  const standIn = create(output);
  for await (const message of messages) {
    bytes.push(
      formOfMessage(message, binary ? "binary envelope" : "JSON envelope", () => encodeEnvelope(0, encode(message))),
    );
    yield standIn;
  }
}

/** The response with the messages of the stream in place of the empty ones; what ends it passes. */
export function withStreamBytes(
  response: UniversalServerResponse,
  { contextValues }: { contextValues?: HandlerContext["values"] },
): UniversalServerResponse {
  const { body } = response;
  if (response.status !== 200 || body === undefined || contextValues === undefined) return response;
  return { ...response, body: inPlace(body as AsyncIterable<Uint8Array>, () => contextValues.get(bytesKey)?.shift()) };
}

async function* inPlace(body: AsyncIterable<Uint8Array>, next: () => Uint8Array | undefined) {
  // Envelopes of messages have no flags; that of the end has one.
  for await (const piece of body) yield piece[0] === 0 ? (next() ?? piece) : piece;
}
