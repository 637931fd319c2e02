import type { DescMessage, Message } from "@bufbuild/protobuf";
import { type Compression, encodeEnvelope, envelopeCompress } from "@connectrpc/connect/protocol";
import type { Pace } from "../event-loop.ts";
import { binaryOf } from "../wire/write-binary.ts";
import { jsonOf } from "../wire/write-json.ts";

/** Smaller messages are not compressed, as by Connect's handlers. */
export const compressBytesMin = 1024;

/** The bytes of a message in the form of its call, those of a large one made in slices. @throws what `pace` throws */
export async function messageBytes(
  desc: DescMessage,
  message: Message,
  binary: boolean,
  pace: Pace,
): Promise<Uint8Array> {
  return binary ? await binaryOf(desc, message, pace) : Buffer.from(await jsonOf(desc, message, pace));
}

/** These bytes in an envelope, compressed when they are many. */
export async function envelopeOf(bytes: Uint8Array, compression: Compression | null): Promise<Uint8Array> {
  const { flags, data } = await envelopeCompress({ flags: 0, data: bytes }, compression, compressBytesMin);
  return encodeEnvelope(flags, data);
}
