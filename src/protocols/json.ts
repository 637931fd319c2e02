import type { OutgoingHttpHeaders } from "node:http";
import type { DescMethod, DescService, Registry } from "@bufbuild/protobuf";
import { Code, type ContextValues, createContextValues, type ServiceImpl } from "@connectrpc/connect";
import { paced } from "../event-loop.ts";
import { checkContentType, checkEncoding, headEndsRequest, readBody, refuseBody } from "../transcoding/body.ts";
import { errorText } from "../transcoding/error-text.ts";
import { httpBodyParts } from "../transcoding/http-body.ts";
import { shortened } from "../transcoding/json/scan.ts";
import type { MessageValues } from "../transcoding/json/values.ts";
import { planner, type RoutePlan } from "../transcoding/plan.ts";
import type { Route } from "../transcoding/routes/binding.ts";
import { matcher } from "../transcoding/routes/match.ts";
import {
  eventStream,
  type Framing,
  ndjson,
  rawStream,
  readLines,
  sendStream,
  wantsEvents,
} from "../transcoding/stream.ts";
import { brokenOff, clientLeft, type Request } from "../wire/body-reader.ts";
import { type Call, callStarter, timeoutOf, untilAborted, watchClient } from "../wire/call.ts";
import { copyHeaders, requestHeaders } from "../wire/headers.ts";
import { memoryFactor } from "../wire/message-limits.ts";
import { breakOff, endResponse, type Response, sendWhole, writeResponseHead } from "../wire/send-response.ts";
import { formOf, isShared } from "../wire/shared-messages.ts";
import { asConnectError, errorStatus, refusalOf } from "../wire/status.ts";

export interface TranscoderOptions {
  /** The table that the plugin makes, or what `bindRoutes` makes of descriptors. */
  routes: readonly Route[];
  services: readonly { service: DescService; implementation: Partial<ServiceImpl<DescService>> }[];
  /** Says whether a call may go on, before a byte of its body is read. Throws the ConnectError of a refusal. */
  admit?(method: DescMethod, header: Headers, request: Request): Promise<ContextValues>;
  /** The largest body, before and after decompression, bytes; one message of a client stream. */
  bodyBytesMax(method: DescMethod): number;
  /** The most items of a batch; without it there is none. */
  itemsMax?: number;
  /** The largest total of a client stream, bytes; without it there is none. */
  streamBytesMax?: number;
  /** The longest silence within a body, ms; a minute without it. */
  bodyIdleMs?: number;
  /** Notified of memory that a body takes, as it comes and as it is read; the ConnectError that it throws refuses the rest. */
  received?(request: Request, bytes: number): void;
  /** The longest time that a unary call may take, ms; also that of requests which name none. */
  timeoutMsMax: number;
  /** What google.protobuf.Any may hold; without it, all types of the services' files. */
  registry?: Registry;
  /** Aborts when the server stops. */
  signal?: AbortSignal;
  /** Whether JSON keys that no field has are an error (the default). */
  unknownFields?: "refuse" | "ignore";
  /** Whose request this is once it was admitted: long work is shared out among tenants. */
  tenantOf?(request: Request): string | undefined;
  /** Headers that every answer to this request carries. */
  headersOf?(request: Request): OutgoingHttpHeaders;
  /** Notified of unexpected errors; the answer says "internal error" alone. */
  report?(error: unknown, request: Request): void;
  /** Notified of the code of every answer that is an error, for logs: its HTTP status may say less. */
  failed?(code: number, request: Request): void;
}

/**
 * Answers HTTP requests by calling RPCs in process, once, without a second encoding. The function owns the answer: it
 * settles when the answer is sent and never rejects. What is left unread of a refused body is the caller's.
 */
export function transcoder(options: TranscoderOptions): (request: Request, response: Response) => Promise<void> {
  const match = matcher(options.routes);
  const itemsMax = options.itemsMax ?? Number.POSITIVE_INFINITY;
  const limitsOf = (method: DescMethod) => ({ itemsMax, memoryBytesMax: options.bodyBytesMax(method) * memoryFactor });
  const { planOf, registry, writer } = planner({ ...options, limitsOf });
  const plans = new Map(options.routes.map((route) => [route, planOf(route)]));
  const startCall = callStarter(options.timeoutMsMax, options.signal);
  const headersOf: (request: Request) => OutgoingHttpHeaders = options.headersOf ?? (() => ({}));
  const noOverrides: ReadonlyMap<number, number> = new Map();

  return async (request, response) => {
    const { url = "", method = "" } = request;
    const route = match.find(method, url);
    const plan = route === undefined ? undefined : plans.get(route);
    if (plan === undefined) return unrouted(request, response);
    const raw = plan.route.variables.map(match.captured);
    const query = url.slice(match.pathEnd() + 1);
    let call: Call | undefined;
    const client = watchClient(response);
    try {
      const header = requestHeaders(request.headers);
      const rpc = plan.route.method;
      const values = (await options.admit?.(rpc, header, request)) ?? createContextValues();
      const timeoutMs = timeoutOf(request.headers, options.timeoutMsMax);
      call = startCall({
        method: rpc,
        protocol: "http",
        httpMethod: method,
        url,
        header,
        values,
        timeoutMs,
        bounded: !plan.streams,
      });
      client.started(call);
      if (plan.streams) await stream(plan, request, response, raw, query, call);
      else {
        const answer = await untilAborted(unary(plan, request, raw, query, call), call);
        const sent = sendAnswer(plan, request, response, answer, call);
        if (sent !== undefined) await sent;
      }
    } catch (thrown) {
      await sendError(request, response, thrown, plan.overrides, call?.headersSet());
    } finally {
      client.ended();
    }
  };

  /** Reads the whole request and calls the RPC; at once, where there is nothing to wait for. */
  function unary(plan: RoutePlan, request: Request, raw: string[], query: string, context: Call): unknown {
    if (plan.route.body === "" && !plan.takesStream && headEndsRequest(request)) {
      return plan.handler(plan.reader.fromUrl(raw, query), context);
    }
    return requestOf(plan, request, raw, query, context).then((input) => plan.handler(input, context));
  }

  async function requestOf(
    plan: RoutePlan,
    request: Request,
    raw: string[],
    query: string,
    call: Call,
  ): Promise<unknown> {
    const { reader, route } = plan;
    const received = (bytes: number) => options.received?.(request, bytes);
    const limits = { bytesMax: options.bodyBytesMax(route.method), idleMs: options.bodyIdleMs ?? 60_000, received };
    const reading = { reserve: received, pace: paced(() => call.check(), options.tenantOf?.(request)) };
    if (plan.takesStream) {
      checkContentType(request, true);
      const streamBytesMax = options.streamBytesMax ?? Number.POSITIVE_INFINITY;
      return readLines(request, { ...limits, streamBytesMax }, (line) => reader.message(line, reading));
    }
    if (route.body === "") {
      if (!headEndsRequest(request)) await refuseBody(request, limits);
      return reader.fromUrl(raw, query);
    }
    if (reader.rawBody) checkEncoding(request.headers["content-encoding"]);
    else checkContentType(request);
    const bytes = await readBody(request, limits);
    const message = reader.fromUrl(raw, query);
    try {
      await reader.addBody(message, bytes, request.headers["content-type"], reading);
    } catch (error) {
      throw (await brokenOff(request)) ? clientLeft : error;
    }
    return message;
  }

  function sendAnswer(plan: RoutePlan, request: Request, response: Response, answer: unknown, call: Call) {
    const headers = headersOf(request);
    const set = call.headersSet();
    if (set !== undefined) copyHeaders(set, headers as Record<string, string | string[]>);
    const value = plan.answerOf(answer as MessageValues);
    // The end of the line is for people at a terminal.
    const sendText = (text: string) => sendWhole(response, 200, headers, `${text}\n`, clientOf(request));
    if (!plan.rawAnswer) {
      headers["content-type"] = "application/json";
      const large = plan.writeLarge(
        value,
        paced(() => call.check(), options.tenantOf?.(request)),
      );
      if (large === undefined) return sendText(plan.write(value));
      return large.then(sendText);
    }
    const { contentType, data } = httpBodyParts(value);
    headers["content-type"] = contentType;
    return sendWhole(response, 200, headers, data, clientOf(request));
  }

  async function stream(
    plan: RoutePlan,
    request: Request,
    response: Response,
    raw: string[],
    query: string,
    call: Call,
  ) {
    const input = await untilAborted(requestOf(plan, request, raw, query, call), call);
    const messages = (plan.handler(input, call) as AsyncIterable<unknown>)[Symbol.asyncIterator]();
    const next = () => untilAborted(messages.next(), call);
    try {
      const first = await next();
      const headers = headersOf(request);
      const set = call.headersSet();
      if (set !== undefined) copyHeaders(set, headers as Record<string, string | string[]>);
      const framing = framingOf(plan, request, first);
      await sendStream(response, headers, request.method === "HEAD", framing, first, next, (thrown) =>
        errorText(
          asConnectError(thrown, (error) => options.report?.(error, request)),
          registry,
          writer,
        ),
      );
    } finally {
      // Not awaited: a handler that does not listen to its signal may never come to its end.
      messages.return?.().catch(() => undefined);
    }
  }

  function framingOf(plan: RoutePlan, request: Request, first: IteratorResult<unknown>): Framing {
    const write = (message: unknown) => plan.write(plan.answerOf(message as MessageValues));
    if (plan.rawAnswer) {
      const bytesOf = (message: unknown) => httpBodyParts(plan.answerOf(message as MessageValues)).data;
      const begin = first.done === true ? undefined : plan.answerOf(first.value as MessageValues);
      return rawStream(httpBodyParts(begin).contentType, bytesOf);
    }
    return sharing(wantsEvents(request.headers.accept) ? eventStream(write) : ndjson(write));
  }

  /** The same framing, which makes the bytes of a message once that many clients are sent. */
  function sharing(framing: Framing): Framing {
    const bytesOf = (message: unknown) => Buffer.from(framing.message(message) as string);
    return {
      ...framing,
      message: (message) =>
        isShared(message) ? formOf(message, framing.contentType, () => bytesOf(message)) : framing.message(message),
    };
  }

  async function unrouted(request: Request, response: Response): Promise<void> {
    const { url = "" } = request;
    const allow = match.allowed(url).join(", ");
    if (allow !== "" && request.method === "OPTIONS") {
      writeResponseHead(response, 204, { ...headersOf(request), allow });
      return endResponse(response);
    }
    const error =
      allow === ""
        ? refusalOf(Code.NotFound, 404, `there is nothing at ${shortened(url.slice(0, match.pathEnd()))}`)
        : refusalOf(Code.Unimplemented, 501, `this path takes ${allow}, not ${request.method}`);
    if (allow !== "") error.metadata.set("allow", allow);
    await sendError(request, response, error, noOverrides, undefined);
  }

  async function sendError(
    request: Request,
    response: Response,
    thrown: unknown,
    overrides: ReadonlyMap<number, number>,
    set: Headers | undefined,
  ): Promise<void> {
    const report = (error: unknown) => options.report?.(error, request);
    if (response.headersSent) {
      asConnectError(thrown, report);
      breakOff(response);
      return;
    }
    const error = asConnectError(thrown, report);
    options.failed?.(error.code, request);
    const headers = headersOf(request);
    if (set !== undefined) copyHeaders(set, headers as Record<string, string | string[]>);
    copyHeaders(error.metadata, headers as Record<string, string | string[]>);
    headers["content-type"] = "application/json";
    await sendWhole(
      response,
      errorStatus(error, overrides),
      headers,
      `${errorText(error, registry, writer)}\n`,
      clientOf(request),
    );
  }
}

function clientOf(request: Request) {
  return { method: request.method, acceptEncoding: request.headers["accept-encoding"] };
}
