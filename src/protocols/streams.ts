import type { DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ContextValues,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type MethodImpl,
} from "@connectrpc/connect";
import { compressionNegotiate, encodeEnvelope, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { parseContentType as connectType } from "@connectrpc/connect/protocol-connect";
import { parseContentType as grpcType } from "@connectrpc/connect/protocol-grpc";
import { parseContentType as webType } from "@connectrpc/connect/protocol-grpc-web";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { reasoned } from "../error-reasons.ts";
import { paced } from "../event-loop.ts";
import { recordOf, tenantOf } from "../rpc/context.ts";
import { abortError, writable } from "../rpc/errors.ts";
import { type BodyReader, bodyReader, brokenOff, type Request, restDiscarded } from "../wire/body-reader.ts";
import { timeoutOf } from "../wire/call.ts";
import { requestHeaders } from "../wire/headers.ts";
import { breakOff } from "../wire/send-response.ts";
import { messageTooLarge, refusalOf, streamTooLarge } from "../wire/status.ts";
import type { Exchange } from "./engine.ts";
import { compressions, envelopeRoom, lookAtLength, messageInEnvelope, messages, type Reading } from "./framing.ts";
import { bytesOfText } from "./grpc-web.ts";
import {
  pathOfRpc,
  type RpcLimits,
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
  /** Its answer is base64. */
  text: boolean;
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
      const begin = { values: createContextValues(), body: none(), text: form?.text ?? false };
      try {
        begin.values = await admit(rpc.method, header, raw);
        if (form === undefined) throw unknownType(raw);
        timeoutOf(raw.headers, limits.deadlineMsMax); // in our words; the plugin reads the time itself
        Object.assign(begin, await readSent(rpc, { request: raw, response: reply.raw }, form, begin.values, limits));
        // The plugin looks for a client that leaves later alone.
        if (reply.raw.destroyed) return reply.hijack();
      } catch (error) {
        if (!(error instanceof ConnectError)) throw error;
        if (await brokenOff(raw)) return reply.hijack();
        if (!raw.complete) await restDiscarded(raw);
        if (form === undefined) return sendRefusal(error, { response: reply.hijack().raw });
        const record = recordOf(raw);
        if (record !== undefined) record.code ??= error.code;
        begin.values.set(denialKey, writable(reasoned(error)));
        for (const name of ["grpc-timeout", "connect-timeout-ms"]) delete raw.headers[name];
      }
      opened.set(request, begin);
    });
    const handling = {
      acceptCompression: compressions,
      shutdownSignal: stopping,
      requestGate({ values }: { readonly values: ContextValues }) {
        const denial = values.get(denialKey);
        if (denial !== undefined) throw denial;
      },
    };
    // The plugin has no form whose body is base64.
    const texts = createConnectRouter(handling);
    addRpcs(texts, rpcs.values());
    scope.addHook("preHandler", async (request, reply) => {
      const begin = opened.get(request) as Opened;
      request.body = begin.body;
      if (!begin.text) return;
      const handler = texts.handlers.find(({ requestPath }) => requestPath === request.routeOptions.url);
      const sent = universalRequestFromNodeRequest(request.raw, reply.raw, begin.body as never, begin.values);
      sent.header.set("content-type", typeOf(sent.header).replace("-text", ""));
      await answerInText(await (handler as NonNullable<typeof handler>)(sent), reply.hijack());
    });
    scope.register(fastifyConnectPlugin, {
      ...handling,
      contextValues: valuesOf,
      routes: (router) => addRpcs(router, rpcs.values()),
    });
    done();
  });
}

function addRpcs(router: ConnectRouter, rpcs: Iterable<WiredRpc>) {
  for (const { method, call } of rpcs) {
    const onRead = (_none: unknown, context: HandlerContext) => {
      const answer = call(context.values.get(sentKey), context);
      if (method.methodKind === "client_streaming") return answer;
      return endedBy(context.signal, answer as AsyncGenerator<unknown>);
    };
    router.rpc(method, onRead as unknown as MethodImpl<typeof method>);
  }
}

/** Reads the message of a call that answers with a stream, or begins to read a stream. */
async function readSent(
  rpc: WiredRpc,
  { request, response }: Pick<Exchange, "request" | "response">,
  form: Form,
  values: ContextValues,
  limits: RpcLimits,
) {
  const { method } = rpc;
  const record = recordOf(request);
  const { binary, text } = form;
  const reserve = (bytes: number) => record && limits.bodies.reserve(record, bytes);
  const reader = rpc.readerOf({ record } as Exchange);
  const encoding = encodingOf(requestHeaders(request.headers).get(form.encodingHeader));
  const reading: Reading = { reader, binary, encoding, reserve, pace: paced(undefined, tenantOf(request)) };
  const body = bodyReader(request, {
    ...boundsOf(method, reader.bytesMax, text, limits),
    idleMs: limits.streamIdleMs,
    received: reserve,
  });
  response.once("close", body.release);
  if (method.methodKind !== "server_streaming") {
    values.set(sentKey, messages(text ? inBytes(body, reserve) : body, reading));
    return { body: none() };
  }
  const bytes = text ? bytesOfText(await body.whole(), reserve) : await body.whole(lookAtLength(reader.bytesMax));
  values.set(sentKey, await messageInEnvelope(bytes, reading));
  return { body: one(binary ? "" : "{}") };
}

/** How much of a stream is read, at most. */
function boundsOf(method: DescMethod, messageBytesMax: number, text: boolean, limits: RpcLimits) {
  // Four characters of base64 hold three bytes.
  const onWire = (bytes: number) => (text ? Math.ceil(bytes / 3) * 4 : bytes);
  if (method.methodKind === "server_streaming")
    return { bytesMax: onWire(messageBytesMax + envelopeRoom), tooLarge: () => messageTooLarge(messageBytesMax) };
  const bytesMax = limits.streamBytesMax(method.parent);
  return { bytesMax: onWire(bytesMax), tooLarge: () => streamTooLarge(bytesMax) };
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
  if (signal.aborted) throw abortError(signal);
}

const malformedAddress = () => refusalOf(Code.InvalidArgument, 400, "the Host header or the path is malformed");

/** How the messages of a stream come. */
interface Form {
  readonly binary: boolean;
  readonly text: boolean;
  readonly encodingHeader: string;
}

function formOf({ headers }: Request): Form | undefined {
  const type = headers["content-type"] ?? "";
  const connect = connectType(type);
  if (connect !== undefined)
    return connect.stream ? { ...connect, text: false, encodingHeader: "connect-content-encoding" } : undefined;
  const grpc = grpcType(type) ?? webType(type);
  return grpc && { text: false, ...grpc, encodingHeader: "grpc-encoding" };
}

/** @throws code 12 for an encoding that is not known */
function encodingOf(named: string | null): string | undefined {
  const packing = compressionNegotiate(compressions, named, null, "");
  if (packing.error !== undefined) throw packing.error;
  return packing.request?.name;
}

const typeOf = (header: Headers) => header.get("content-type") ?? "";

/** Undoes the base64 of a stream as it comes. */
function inBytes(
  body: BodyReader,
  reserve: (bytes: number) => void,
): Pick<BodyReader, "release"> & AsyncIterable<Buffer> {
  async function* decoded() {
    let rest = Buffer.alloc(0);
    for await (const piece of body) {
      const text = Buffer.concat([rest, piece]);
      const whole = text.length - (text.length % 4);
      rest = text.subarray(whole);
      if (whole > 0) yield bytesOfText(text.subarray(0, whole), reserve);
    }
    if (rest.length > 0) yield bytesOfText(rest, reserve);
  }
  return { release: body.release, [Symbol.asyncIterator]: decoded };
}

/** Sends an answer of gRPC-Web in base64, each piece as it comes. */
async function answerInText({ header, body, ...answer }: UniversalServerResponse, reply: FastifyReply) {
  const { raw } = reply;
  async function* encoded() {
    for await (const piece of body as AsyncIterable<Uint8Array>)
      yield Buffer.from(Buffer.from(piece).toString("base64"));
  }
  const headers = new Headers(header);
  headers.set("content-type", typeOf(headers).replace("grpc-web", "grpc-web-text"));
  for (const [name, value] of Object.entries(reply.getHeaders())) raw.setHeader(name, value as string);
  // The client has gone.
  await universalResponseToNodeResponse({ ...answer, header: headers, body: encoded() }, raw).catch(() =>
    breakOff(raw),
  );
}

async function* none(): AsyncGenerator<Uint8Array> {}

async function* one(message: string): AsyncGenerator<Uint8Array> {
  yield encodeEnvelope(0, Buffer.from(message));
}
