import {
  create,
  createRegistry,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type Message,
  mergeFromBinary,
} from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { ConnectError } from "@connectrpc/connect";
import type { Pace } from "../event-loop.ts";
import { bodyText } from "../transcoding/body.ts";
import { parseText, type ReadingCall, type TextReader } from "../transcoding/json/parse.ts";
import { jsonReader } from "../transcoding/json/read-json.ts";
import { portionReader } from "../transcoding/json/read-portions.ts";
import { countBinary } from "../wire/count-binary.ts";
import { type CountLimits, memoryFactor } from "../wire/message-limits.ts";
import { holdsRedacted } from "../wire/redacted.ts";
import { invalidValue, messageTooLarge } from "../wire/status.ts";

/** Bounds of the messages of an RPC. */
export interface MessageLimits {
  /** Largest message, bytes, on the wire and again after decompression. */
  bytesMax: number;
  /** Items of a batch. */
  itemsMax: number;
}

/** Makes messages of their bytes. */
export interface MessageReader {
  readonly bytesMax: number;
  readonly limits: CountLimits;
  /**
   * Counts what the bytes hold, reserves memory for it, and decodes it, large ones in slices.
   * @throws code 3 for what cannot be decoded or holds too many elements, code 8 for what is too large.
   */
  read(bytes: Uint8Array, binary: boolean, call: ReadingCall): Message | Promise<Message>;
}

/** Reads the requests of one RPC in a way of its own, and with the reader that all have; the tenant is known by then. */
export type OwnReader = (whole: MessageReader, tenantId: () => string | undefined) => MessageReader;

const reader = jsonReader({ registry: createRegistry() });

/** The reader of an RPC's requests, in binary and in the JSON of Connect and gRPC, where unknown fields are passed over. */
export function messageReader({ input }: DescMethod, { bytesMax, itemsMax }: MessageLimits): MessageReader {
  const limits: CountLimits = { itemsMax, memoryBytesMax: bytesMax * memoryFactor };
  const options = { root: input, limits, ignoreUnknown: true, discreet: holdsRedacted(input) };
  const json = { whole: reader.message(input), inPortions: portionReader(reader, input) } as TextReader<unknown>;
  return {
    bytesMax,
    limits,
    read(bytes, binary, call) {
      if (bytes.byteLength > bytesMax) throw messageTooLarge(bytesMax);
      if (!binary) {
        const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        return parseText(bodyText(buffer), buffer, json, options, call) as Promise<Message>;
      }
      call.reserve(countBinary(input, bytes, limits));
      if (bytes.byteLength > sliceBytes) return inSlices(input, bytes, call.pace).catch(undecoded);
      try {
        return fromBinary(input, bytes, binaryOptions);
      } catch (error) {
        return undecoded(error);
      }
    },
  };
}

function undecoded(error: unknown): never {
  if (error instanceof ConnectError) throw error;
  throw invalidValue("", `the message cannot be decoded: ${(error as Error).message}`);
}

const sliceBytes = 64 * 1024;
const binaryOptions = { readUnknownFields: false };

/** A message is the same as the parts of it that end between two of its fields, merged. */
async function inSlices(input: DescMessage, bytes: Uint8Array, pace: Pace): Promise<Message> {
  // Counting is a turn of its own: of a batch of a million values it took 160 ms, and its first item another 75.
  await pace();
  const message = create(input);
  const wire = new BinaryReader(bytes);
  for (let from = 0; from < bytes.byteLength; from = wire.pos) {
    while (wire.pos < bytes.byteLength && wire.pos - from < sliceBytes) {
      const [number, type] = wire.tag();
      if (type === WireType.LengthDelimited) {
        const length = wire.uint32();
        wire.pos += length;
      } else wire.skip(type, number);
    }
    mergeFromBinary(input, message, bytes.subarray(from, wire.pos), binaryOptions);
    await pace();
  }
  return message;
}
