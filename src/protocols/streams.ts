import type { DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type MethodImpl,
} from "@connectrpc/connect";
import { compressionNegotiate, encodeEnvelope } from "@connectrpc/connect/protocol";
import { parseContentType as connectType } from "@connectrpc/connect/protocol-connect";
import { parseContentType as grpcType } from "@connectrpc/connect/protocol-grpc";
import { parseContentType as webType } from "@connectrpc/connect/protocol-grpc-web";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { reasoned } from "../error-reasons.ts";
import { paced } from "../event-loop.ts";
import { recordOf, tenantOf } from "../rpc/context.ts";
import { writable } from "../rpc/errors.ts";
import { bodyReader, brokenOff, type Request } from "../wire/body-reader.ts";
import { requestHeaders } from "../wire/headers.ts";
import { messageTooLarge, refusalOf, streamTooLarge } from "../wire/status.ts";
import type { Exchange } from "./engine.ts";
import { compressions, envelopeRoom, lookAtLength, messageInEnvelope, messages, type Reading } from "./framing.ts";
import {
  pathOfRpc,
  type RpcOptions,
  refuseMethod,
  sendRefusal,
  unknownType,
  type WiredRpc,
  wiredRpcs,
} from "./rpc-routes.ts";

/** A stream that is about to be served: what its handler reads, or why it is refused. */
interface Opened {
  values: ContextValues;
  /** Stands in for the body, which is read already. */
  body: AsyncIterable<Uint8Array>;
}

const sentKey = createContextKey<unknown>(undefined);
const denialKey = createContextKey<ConnectError | undefined>(undefined);
const post = ["POST"];

/**
 * Serves RPCs that are streams by Connect's plugin for Fastify: errors, deadlines and what goes to the client are its. Key and
 * permission are asked for before a byte is read, and what comes passes the one reading of requests, which counts before it decodes.
 */
export async function serveStreams(app: FastifyInstance, options: RpcOptions): Promise<void> {
  const { admit, limits, stopping } = options;
  const rpcs = new Map(wiredRpcs(options, false).map((rpc) => [pathOfRpc(rpc.method), rpc]));
  const opened = new WeakMap<FastifyRequest, Opened>();
  const valuesOf = (request: FastifyRequest) => opened.get(request)?.values ?? createContextValues();
  await app.register((scope, _options, done) => {
    scope.addHook("onRequest", async (request, reply) => {
      const rpc = rpcs.get(request.routeOptions.url ?? "") as WiredRpc;
      const { raw } = request;
      if (raw.method !== "POST") return refuseMethod(post, raw, reply.hijack().raw);
      const header = requestHeaders(raw.headers);
      if (!URL.canParse(raw.url ?? "", `http://${raw.headers[":authority"] ?? raw.headers.host}`))
        return sendRefusal(malformedAddress(), { response: reply.hijack().raw });
      const form = formOf(raw);
      const begin = { values: createContextValues(), body: none() };
      try {
        begin.values = await admit(rpc.method, header, raw);
        if (form === undefined) throw unknownType(raw);
        Object.assign(begin, await read(rpc, raw, reply.raw, form, begin.values));
        // The plugin looks for a client that leaves later alone.
        if (reply.raw.destroyed) return reply.hijack();
      } catch (error) {
        if (!(error instanceof ConnectError)) throw error;
        if (await brokenOff(raw)) return reply.hijack();
        if (form === undefined) return sendRefusal(error, { response: reply.hijack().raw });
        const record = recordOf(raw);
        if (record !== undefined) record.code ??= error.code;
        begin.values.set(denialKey, writable(reasoned(error)));
      }
      opened.set(request, begin);
    });
    scope.addHook("preHandler", async (request) => {
      request.body = opened.get(request)?.body;
    });
    scope.register(fastifyConnectPlugin, {
      acceptCompression: compressions,
      shutdownSignal: stopping,
      contextValues: valuesOf,
      requestGate({ values }) {
        const denial = values.get(denialKey);
        if (denial !== undefined) throw denial;
      },
      routes(router) {
        for (const { method, call } of rpcs.values()) {
          const onRead = (_none: unknown, context: HandlerContext) => {
            const answer = call(context.values.get(sentKey), context);
            if (method.methodKind === "client_streaming") return answer;
            return endedBy(context.signal, answer as AsyncGenerator<unknown>);
          };
          router.rpc(method, onRead as unknown as MethodImpl<typeof method>);
        }
      },
    });
    done();
  });

  /** Reads the message of a call that answers with a stream, or begins to read a stream. */
  async function read(
    rpc: WiredRpc,
    request: Request,
    response: Exchange["response"],
    form: Form,
    values: ContextValues,
  ) {
    const { method } = rpc;
    const record = recordOf(request);
    const { binary } = form;
    const reserve = (bytes: number) => record && limits.bodies?.reserve(record, bytes);
    const reader = rpc.readerOf({ record } as Exchange);
    const encoding = encodingOf(requestHeaders(request.headers).get(form.encodingHeader));
    const reading: Reading = { reader, binary, encoding, reserve, pace: paced(undefined, tenantOf(request)) };
    const body = bodyReader(request, boundsOf(method, reader.bytesMax, reserve));
    response.once("close", body.release);
    if (method.methodKind !== "server_streaming") {
      values.set(sentKey, messages(body, reading));
      return { body: none() };
    }
    values.set(sentKey, await messageInEnvelope(await body.whole(lookAtLength(reader.bytesMax)), reading));
    return { body: one(binary ? "" : "{}") };
  }

  function boundsOf(method: DescMethod, messageBytesMax: number, received: (bytes: number) => void) {
    const idleMs = limits.streamIdleMs;
    if (method.methodKind === "server_streaming") {
      return {
        bytesMax: messageBytesMax + envelopeRoom,
        idleMs,
        received,
        tooLarge: () => messageTooLarge(messageBytesMax),
      };
    }
    const bytesMax = limits.streamBytesMax(method.parent);
    return { bytesMax, idleMs, received, tooLarge: () => streamTooLarge(bytesMax) };
  }
}

/**
 * Ends a stream as its signal says. The plugin waits for ever to write to a client that has gone: the handler ends all the same.
 * A client that is slow when the time is over is told so; the plugin would take the end of the handler for the end of the stream.
 */
async function* endedBy(signal: AbortSignal, answers: AsyncGenerator<unknown>): AsyncGenerator<unknown> {
  signal.addEventListener("abort", () => void answers.return(undefined).catch(() => {}), { once: true });
  for await (const each of answers) {
    yield each;
    if (signal.aborted) break;
  }
  if (signal.aborted) throw signal.reason;
}

const malformedAddress = () => refusalOf(Code.InvalidArgument, 400, "the Host header or the path is malformed");

/** How the messages of a stream come. */
interface Form {
  readonly binary: boolean;
  readonly encodingHeader: string;
}

function formOf({ headers }: Request): Form | undefined {
  const type = headers["content-type"] ?? "";
  const connect = connectType(type);
  if (connect !== undefined)
    return connect.stream ? { ...connect, encodingHeader: "connect-content-encoding" } : undefined;
  const web = webType(type);
  const grpc = grpcType(type) ?? (web?.text ? undefined : web);
  return grpc && { ...grpc, encodingHeader: "grpc-encoding" };
}

/** @throws code 12 for an encoding that is not known */
function encodingOf(named: string | null): string | undefined {
  const packing = compressionNegotiate(compressions, named, null, "");
  if (packing.error !== undefined) throw packing.error;
  return packing.request?.name;
}

async function* none(): AsyncGenerator<Uint8Array> {}

async function* one(message: string): AsyncGenerator<Uint8Array> {
  yield encodeEnvelope(0, Buffer.from(message));
}
