import type { DescMethod } from "@bufbuild/protobuf";
import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { reasoned } from "../error-reasons.ts";
import { type Pace, paced } from "../event-loop.ts";
import { type RequestRecord, recordOf, tenantOf } from "../rpc/context.ts";
import { internalError } from "../rpc/errors.ts";
import type { Pipeline } from "../rpc/pipeline.ts";
import type { RequestMemory } from "../rpc/request-memory.ts";
import { encodingName } from "../transcoding/body.ts";
import { type BodyReader, bodyReader, brokenOff, type Request, restDiscarded } from "../wire/body-reader.ts";
import { type Call, type CallTime, callStarter, timeoutOf, watchClient } from "../wire/call.ts";
import { requestHeaders } from "../wire/headers.ts";
import { breakOff, type Response } from "../wire/send-response.ts";
import { messageTooLarge } from "../wire/status.ts";
import { unpack } from "../wire/unpack.ts";

/** A request that is being answered. */
export interface Exchange {
  readonly request: Request;
  readonly response: Response;
  readonly record: RequestRecord | undefined;
  readonly header: Headers;
  /** Counts memory that the request takes. @throws code 8 when there is no room */
  reserve(bytes: number): void;
  /** The reading of its body, once that has begun. */
  body: BodyReader | undefined;
  /** How its answer goes where its protocol packs messages, once that is known; null: as it is. */
  packing: Compression | null;
}

/** Reads the requests of a protocol and writes its answers and errors; all else is the engine's. */
export interface Protocol<Rpc, Held extends CallTime = Call> {
  /** Tells handlers how they are called. */
  readonly name: string;
  /** Reads the message; returns no promise where there is nothing to wait for. @throws ConnectError for what cannot be read */
  read(rpc: Rpc, exchange: Exchange, call: Held): unknown;
  write(rpc: Rpc, answer: unknown, exchange: Exchange, call: Held): void | Promise<void>;
  /** Writes an error; without a call it was refused by its headers. */
  refuse(rpc: Rpc, error: ConnectError, exchange: Exchange, call: Held | undefined): void | Promise<void>;
}

/** Admits calls, does their work and words their errors, whatever their protocol. */
export interface Steps<Rpc, Held extends CallTime = Call> {
  /** Admits a call by its headers, before a byte of its body is read, and starts its time. @throws what it is refused with */
  admit(rpc: Rpc, exchange: Exchange, protocol: string): Promise<Held>;
  work(rpc: Rpc, message: unknown, exchange: Exchange, call: Held): unknown;
  /** Turns what was thrown into the error to answer, and notes its code. */
  fail(thrown: unknown, exchange: Exchange, call: Held | undefined): ConnectError;
}

/** Answers a request over a protocol. Settles when the answer is sent. */
export type Engine<Rpc, Held extends CallTime = Call> = (
  protocol: Protocol<Rpc, Held>,
  rpc: Rpc,
  request: Request,
  response: Response,
) => Promise<void>;

/**
 * Makes the one way of all calls: admit, read, work, write. A call waits for none of them longer than its deadline, its client or
 * the server lets it. What is left unread of a refused body is the port's.
 */
export function engine<Rpc, Held extends CallTime = Call>(
  { admit, work, fail }: Steps<Rpc, Held>,
  bodies: RequestMemory,
): Engine<Rpc, Held> {
  return async (protocol, rpc, request, response) => {
    const record = recordOf(request);
    const exchange: Exchange = {
      request,
      response,
      record,
      header: requestHeaders(request.headers),
      reserve(bytes) {
        if (record !== undefined) bodies.reserve(record, bytes);
      },
      body: undefined,
      packing: null,
    };
    let call: Held | undefined;
    let reads = true;
    const client = watchClient(response);
    try {
      const held = await admit(rpc, exchange, protocol.name);
      call = held;
      client.started(held);
      const go = (message: unknown) => {
        reads = false;
        // Its time may have passed while the message was unpacked: what was answered with that is not done.
        held.check();
        return work(rpc, message, exchange, held);
      };
      const message = protocol.read(rpc, exchange, held);
      const outcome = message instanceof Promise ? message.then(go) : go(message);
      const answer = outcome instanceof Promise ? await held.until(outcome) : outcome;
      const written = protocol.write(rpc, answer, exchange, held);
      if (written !== undefined) await written;
    } catch (thrown) {
      if (reads && exchange.body !== undefined && (await brokenOff(request))) return;
      const error = fail(thrown, exchange, call);
      exchange.body?.release();
      if (!request.complete) await restDiscarded(request);
      if (response.headersSent) breakOff(response);
      else await protocol.refuse(rpc, error, exchange, call);
    } finally {
      client.ended();
      exchange.body?.release();
    }
  };
}

/** Bounds of a body. */
export interface BodyBounds {
  /** The largest message, bytes. */
  readonly bytesMax: number;
  /** Longest silence, ms. */
  readonly idleMs: number;
}

/** Begins to read a body. `aroundBytes` may come beside the message. */
export function openBody(exchange: Exchange, { bytesMax, idleMs }: BodyBounds, aroundBytes = 0): BodyReader {
  const tooLarge = () => messageTooLarge(bytesMax);
  const { request, reserve } = exchange;
  exchange.body = bodyReader(request, { bytesMax: bytesMax + aroundBytes, idleMs, tooLarge, received: reserve });
  if (Number(request.headers["content-length"] ?? 0) > bytesMax + aroundBytes) throw tooLarge();
  return exchange.body;
}

/** Reads the whole body of a call over HTTP, decompressed. @throws code 4 after a silence, 413 beyond its bound */
export async function readBody(exchange: Exchange, bounds: BodyBounds): Promise<Buffer> {
  const bytes = await openBody(exchange, bounds).whole();
  const encoding = encodingName(exchange.request.headers["content-encoding"]);
  if (bytes.length === 0 || encoding === "identity") return bytes;
  const { bytesMax } = bounds;
  return unpack(bytes, encoding, { bytesMax, tooLarge: () => messageTooLarge(bytesMax), received: exchange.reserve });
}

/** Returns what the answer to a client depends on. */
export function clientOf({ method, headers }: Request) {
  return { method, acceptEncoding: headers["accept-encoding"] };
}

/** Cuts long work for a call into slices. */
export const paceOf = ({ request }: Exchange, call: CallTime): Pace => paced(() => call.check(), tenantOf(request));

/** An RPC as the engine calls it. */
export interface Rpc {
  readonly method: DescMethod;
  /** As `Pipeline.implement` wraps it. */
  call(message: unknown, context: HandlerContext): unknown;
  /** Answers with a stream, which has no longest time. */
  readonly streams?: boolean;
}

interface RpcOptions {
  admit: Pipeline["admit"];
  deadlineMsMax: number;
  /** Aborts when running calls must end. */
  stopping: AbortSignal | undefined;
  /** Notified of unexpected errors; the answer says "internal error" alone. */
  report(error: unknown, request: Request): void;
  bodies: RequestMemory;
}

/** The engine of the RPCs. */
export function rpcEngine<R extends Rpc>({ admit, deadlineMsMax, stopping, report, bodies }: RpcOptions): Engine<R> {
  const startCall = callStarter(deadlineMsMax, stopping);
  return engine<R>(
    {
      async admit({ method, streams }, { request, header }, protocol) {
        const values = await admit(method, header, request);
        const timeoutMs = timeoutOf(request.headers, deadlineMsMax);
        const { method: httpMethod = "", url = "" } = request;
        return startCall({ method, protocol, httpMethod, url, header, values, timeoutMs, bounded: streams !== true });
      },
      work: (rpc, message, _exchange, call) => rpc.call(message, call),
      fail(thrown, { request, record }) {
        const foreseen = thrown instanceof ConnectError;
        if (!foreseen) report(thrown, request);
        const error = foreseen ? thrown : internalError();
        // The pipeline has noted what its function failed with.
        if (record !== undefined) record.code = foreseen ? (record.code ?? error.code) : error.code;
        return reasoned(error);
      },
    },
    bodies,
  );
}
