import type { OutgoingHttpHeaders } from "node:http";
import type { Registry } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { reasoned } from "../error-reasons.ts";
import { checkContentType, checkEncoding, headEndsRequest, refuseBody } from "../transcoding/body.ts";
import { didYouMean } from "../transcoding/did-you-mean.ts";
import { errorText } from "../transcoding/error-text.ts";
import { httpBodyParts } from "../transcoding/http-body.ts";
import { shortened } from "../transcoding/json/scan.ts";
import type { MessageValues } from "../transcoding/json/values.ts";
import { planner, type RoutePlan } from "../transcoding/plan.ts";
import type { Route } from "../transcoding/routes/binding.ts";
import { routeMatcher } from "../transcoding/routes/match.ts";
import { eventStream, type Framing, ndjson, rawStream, sendStream, wantsEvents } from "../transcoding/stream.ts";
import type { Request } from "../wire/body-reader.ts";
import { type Call, untilAborted } from "../wire/call.ts";
import { copyHeaders } from "../wire/headers.ts";
import { memoryFactor } from "../wire/message-limits.ts";
import { endResponse, type Response, sendWhole, writeResponseHead } from "../wire/send-response.ts";
import { asConnectError, errorStatus, refusalOf } from "../wire/status.ts";
import { whenDone } from "../wire/when-done.ts";
import { clientOf, type Exchange, type Protocol, paceOf, type Rpc, readBody, rpcEngine } from "./engine.ts";
import type { RpcLimits, RpcOptions } from "./rpc-routes.ts";

/** What the transcoder serves, by which routes. */
export interface TranscoderOptions extends RpcOptions {
  /** The table that the plugin makes, or what `bindRoutes` makes of descriptors. */
  readonly routes: readonly Route[];
  /** What google.protobuf.Any may hold; without it, all types of the services' files. */
  readonly registry?: Registry;
  /** Whether JSON keys that no field has are an error (the default). */
  readonly unknownFields?: "refuse" | "ignore";
}

/** A call of an RPC by a route, with what its address says. */
interface RoutedCall extends Rpc {
  readonly plan: RoutePlan;
  readonly raw: string[];
  readonly query: string;
}

const noOverrides: ReadonlyMap<number, number> = new Map();

/**
 * Answers HTTP requests by calling RPCs in process, once, without a second encoding. The function owns the answer: it
 * settles when the answer is sent and never rejects. What is left unread of a refused body is the caller's.
 */
export function transcoder(options: TranscoderOptions): (request: Request, response: Response) => Promise<void> {
  const { admit, limits, report, stopping } = options;
  const match = routeMatcher(options.routes);
  const { planOf, registry, writer } = planner({
    ...options,
    limitsOf: ({ parent }) => ({
      itemsMax: limits.itemsMax,
      memoryBytesMax: limits.messageBytesMax(parent) * memoryFactor,
    }),
  });
  const plans = new Map(options.routes.map((route) => [route, planOf(route)]));
  const { deadlineMsMax, bodies } = limits;
  const serve = rpcEngine<RoutedCall>({ admit, deadlineMsMax, stopping, report, bodies });
  const protocol: Protocol<RoutedCall> = {
    name: "http",
    read: (routed, exchange, call) =>
      // At once, where there is nothing to wait for.
      routed.plan.route.body === "" && headEndsRequest(exchange.request)
        ? routed.plan.reader.fromUrl(routed.raw, routed.query)
        : readRequest(routed, limits, exchange, call),
    write: ({ plan }, answer, exchange, call) =>
      plan.streams ? writeStream(plan, answer, exchange, call) : writeAnswer(plan, answer, exchange, call),
    refuse: ({ plan }, error, exchange, call) => sendError(exchange, error, plan.overrides, call),
  };

  return (request, response) => {
    const { url = "", method = "" } = request;
    const route = match.find(method, url);
    const plan = route === undefined ? undefined : plans.get(route);
    if (plan === undefined) return unrouted(request, response);
    const raw = plan.route.variables.map(match.captured);
    const query = url.slice(match.pathEnd() + 1);
    const { handler: call, streams } = plan;
    return serve(protocol, { method: plan.route.method, call, streams, plan, raw, query }, request, response);
  };

  async function writeStream(plan: RoutePlan, answer: unknown, exchange: Exchange, call: Call) {
    const { request, response } = exchange;
    const messages = (answer as AsyncIterable<unknown>)[Symbol.asyncIterator]();
    const next = () => untilAborted(messages.next(), call);
    try {
      const first = await next();
      const framing = framingOf(plan, request, first);
      const headers = headersOf(call);
      await sendStream(response, headers, request.method === "HEAD", framing, first, next, (thrown) =>
        errorText(reasoned(asConnectError(thrown, (error) => report(error, request))), registry, writer),
      );
    } finally {
      // Not awaited: a handler that does not listen to its signal may never come to its end.
      messages.return?.().catch(() => undefined);
    }
  }

  async function unrouted(request: Request, response: Response): Promise<void> {
    const allow = match.allowed(request.url ?? "").join(", ");
    if (allow !== "" && request.method === "OPTIONS") {
      writeResponseHead(response, 204, { allow });
      return endResponse(response);
    }
    await sendError({ request, response }, unroutedError(match, options.routes, request), noOverrides, undefined);
  }

  function sendError(
    { request, response }: Pick<Exchange, "request" | "response">,
    error: ConnectError,
    overrides: ReadonlyMap<number, number>,
    call: Call | undefined,
  ): void | Promise<void> {
    const headers = headersOf(call);
    copyHeaders(error.metadata, headers as Record<string, string | string[]>);
    headers["content-type"] = "application/json";
    const text = `${errorText(reasoned(error), registry, writer)}\n`;
    return sendWhole(response, errorStatus(error, overrides), headers, text, clientOf(request));
  }
}

async function readRequest({ plan, raw, query }: RoutedCall, limits: RpcLimits, exchange: Exchange, call: Call) {
  const { reader, route } = plan;
  const { request, reserve } = exchange;
  const { parent } = route.method;
  const bounds = { bytesMax: limits.messageBytesMax(parent), idleMs: limits.streamIdleMs };
  const reading = { reserve, pace: paceOf(exchange, call) };
  if (route.body === "") {
    if (!headEndsRequest(request)) await refuseBody(request, { ...bounds, received: reserve });
    return reader.fromUrl(raw, query);
  }
  if (reader.rawBody) checkEncoding(request.headers["content-encoding"]);
  else checkContentType(request);
  const bytes = await readBody(exchange, bounds);
  const message = reader.fromUrl(raw, query);
  await reader.addBody(message, bytes, request.headers["content-type"], reading);
  return message;
}

function writeAnswer(plan: RoutePlan, answer: unknown, exchange: Exchange, call: Call) {
  const { request, response } = exchange;
  const headers = headersOf(call);
  const value = plan.answerOf(answer as MessageValues);
  // The end of the line is for people at a terminal.
  const sendText = (text: string) => sendWhole(response, 200, headers, `${text}\n`, clientOf(request));
  if (!plan.rawAnswer) {
    headers["content-type"] = "application/json";
    const large = plan.writeLarge(value, paceOf(exchange, call));
    if (large === undefined) return sendText(plan.write(value));
    return whenDone(large, sendText);
  }
  const { contentType, data } = httpBodyParts(value);
  headers["content-type"] = contentType;
  return sendWhole(response, 200, headers, data, clientOf(request));
}

function framingOf(plan: RoutePlan, request: Request, first: IteratorResult<unknown>): Framing {
  const write = (message: unknown) => plan.write(plan.answerOf(message as MessageValues));
  if (plan.rawAnswer) {
    const bytesOf = (message: unknown) => httpBodyParts(plan.answerOf(message as MessageValues)).data;
    const begin = first.done === true ? undefined : plan.answerOf(first.value as MessageValues);
    return rawStream(httpBodyParts(begin).contentType, bytesOf);
  }
  return wantsEvents(request.headers.accept) ? eventStream(write) : ndjson(write);
}

/** Says that there is nothing at an address, or what its path takes. */
function unroutedError(
  match: ReturnType<typeof routeMatcher>,
  routes: readonly Route[],
  { url = "", method }: Request,
) {
  const path = url.slice(0, match.pathEnd());
  const allow = match.allowed(url).join(", ");
  if (allow === "")
    return refusalOf(
      Code.NotFound,
      404,
      `there is nothing at ${shortened(path)}${pathHint(path, routes)}`,
      ErrorReason.PATH_NOT_FOUND,
    );
  const error = refusalOf(
    Code.Unimplemented,
    501,
    `this path takes ${allow}, not ${method}`,
    ErrorReason.METHOD_NOT_ALLOWED,
  );
  error.metadata.set("allow", allow);
  return error;
}

/** Paths of other services, and where that is here. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [/[/:]ack(nowledge)?$/, "/v1/event-management/status"],
  [/^\/v1\/alerts(\/|$)/, "/api/v2/alerts"],
  [/^\/v1\/silences(\/|$)/, "/v1/notification/silences"],
];

/** Says which path was meant: one that ends the same, such as `/v1/notification/silences` for `/v1/silences`, or one that is spelled alike. */
function pathHint(path: string, routes: readonly Route[]): string {
  const [, place] = elsewhere.find(([known]) => known.test(path)) ?? [];
  if (place !== undefined) return `; did you mean ${JSON.stringify(place)}?`;
  const given = path.split("/").slice(1);
  const shown = ({ segments, custom }: Route) => {
    // Variables take what stands in their places.
    const parts = segments.map((segment, i) => (typeof segment === "string" ? segment : given[i]?.split(":")[0]));
    return `/${parts.join("/")}${custom === "" ? "" : `:${custom}`}`;
  };
  const ending = routes.find(({ segments, custom }) => custom === "" && segments.at(-1) === given.at(-1));
  if (ending?.segments.every((segment) => typeof segment === "string"))
    return `; did you mean ${JSON.stringify(shown(ending))}?`;
  return didYouMean(path, routes.filter(({ segments }) => segments.length === given.length).map(shown));
}

function headersOf(call: Call | undefined): OutgoingHttpHeaders {
  const headers: Record<string, string | string[]> = {};
  const set = call?.headersSet();
  if (set !== undefined) copyHeaders(set, headers);
  return headers;
}
