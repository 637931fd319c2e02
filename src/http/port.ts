import { setTimeout as sleep } from "node:timers/promises";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Config } from "../config/settings.ts";
import { unavailable } from "../errors.ts";
import { errorBody, type RpcRoute, sendBody } from "../protocols/error-body.ts";
import type { OwnReader } from "../protocols/message-reader.ts";
import { answerMissingRpc, type RpcOptions, type ServedService, unaryRoutes } from "../protocols/rpc-routes.ts";
import { serveStreams } from "../protocols/streams.ts";
import { openRecord, type RequestRecord, recordOf } from "../rpc/context.ts";
import { logRequest, logUnexpected } from "../rpc/log.ts";
import type { Pipeline } from "../rpc/pipeline.ts";
import { requestId } from "../rpc/request-id.ts";
import type { RequestMemory } from "../rpc/request-memory.ts";
import { version } from "../version.ts";
import type { Request } from "../wire/body-reader.ts";
import { answerDefaults, breakOff, type Response } from "../wire/send-response.ts";
import { codeOfStatus } from "../wire/status.ts";
import { type Aliases, aliasPaths } from "./aliases.ts";
import { calledUrl } from "./called-url.ts";
import { allowOrigins } from "./cors.ts";
import { answerAfterBody, hasBody, type RestLimits } from "./drain-request-body.ts";
import { type ForeignRoutes, foreignRoute, keyAdopter, noRoutes, pathOf } from "./foreign-routes.ts";
import { type Incoming, listen, type RequestHandler } from "./listener.ts";
import { servePages } from "./pages/pages.ts";
import type { Identity } from "./tls-server.ts";
import { connectionOf, type UnreadResponses } from "./unread-responses.ts";

/** What a port needs. */
export interface PortOptions {
  config: Pick<
    Config,
    | "host"
    | "port"
    | "corsOrigins"
    | "messageBytesMax"
    | "receiverBytesMax"
    | "receiverItemsMax"
    | "streamBytesMax"
    | "streamIdleMs"
    | "deadlineMsMax"
    | "plaintext"
    | "connectionsMax"
  >;
  /** Certificate chain and key, PEM, and the local CA's file; left out in plain-text mode. */
  tls: (Identity & { caFile?: string | undefined }) | undefined;
  /** Connections that another process takes; absent: a port is opened. */
  incoming?: Incoming | undefined;
  /** Services with RPCs as `Pipeline.implement` wraps them. */
  services: readonly ServedService[];
  admit: Pipeline["admit"];
  /** Answers every path below /v1/, whole. */
  transcode?: (request: Request, response: Response) => Promise<void>;
  /** A request is over, answered with this HTTP status or not. */
  ended?(record: RequestRecord, request: Request, status: number | undefined): void;
  /** Counts the memory of all bodies; absent: it is not counted. */
  bodies?: RequestMemory;
  /** Counts the bytes of answers that wait for their clients; absent: they are not counted. */
  untaken?: UnreadResponses;
  /** RPCs whose requests are read in a way of their own. */
  readers?: ReadonlyMap<DescMethod, OwnReader>;
  /** Why nothing can be served; undefined: it can. */
  notReady(): string | undefined;
  log: Logger;
  /** Protocols that are not ours; on their paths a key may also come as the password of `Authorization: Basic`. */
  foreign?: ForeignRoutes;
  /** Adds further pages for people. */
  morePages?(app: FastifyInstance): void;
  /** Foreign names of services and of the key's header. */
  aliases?: Aliases;
  /** Aborted by `close` when running calls must end; give the transcoder its signal. */
  stopping?: AbortController;
}

/** A port that serves. */
export interface Port {
  readonly address: { host: string; port: number; url: string };
  /** How many connections there are. */
  connections(): number;
  /**
   * For that long it serves as before and says that it is about to stop, so that its clients go elsewhere: it is not ready, and closes
   * connections of HTTP/1.1 behind their next answer.
   */
  leave(ms: number): Promise<void>;
  /** Stops in order: no new connections, running calls finish within `drainMs`, then they end with code 14. May be called twice. */
  close(options: { drainMs: number }): Promise<void>;
}

const lastWordsMs = 500;
// Clearly more than a message may have, so that the client of one that is a little too large reads the reason.
const rest: RestLimits = { graceMs: 150, waitMs: 10_000, bytesMax: 12 * 1024 * 1024 };

/** What is called without a key is asked in a few words. */
const brief = { names: /^grpc\.|\.SessionService$/, messageBytesMax: 16 * 1024, streamBytesMax: 1024 * 1024 };

/** The largest message of a service, bytes: the data receiver takes larger ones. */
export function messageBytesMax(config: PortOptions["config"], service: DescService): number {
  if (brief.names.test(service.typeName)) return brief.messageBytesMax;
  return service.typeName.startsWith("belfry.receiver.") ? config.receiverBytesMax : config.messageBytesMax;
}

/** Opens the port: gRPC, gRPC-Web, Connect, /v1, /healthz, /readyz and the pages for people over HTTP/1.1 and HTTP/2. @throws Node's error when it cannot listen. */
export async function openPort(options: PortOptions): Promise<Port> {
  const { config, log, transcode, aliases, foreign = noRoutes } = options;
  const stopping = options.stopping ?? new AbortController();
  let leaving = false;
  const rpcs = rpcOptions(options, stopping.signal);
  const services = rpcs.services.map(({ service }) => service);
  const ownPaths = aliasPaths(services, aliases?.services);
  const routes = unaryRoutes(rpcs);
  for (const [path, route] of foreign) routes.set(path, route);
  const adoptKey = keyAdopter(foreign, aliases?.keyHeaders);
  const app = await application({ ...options, rpcs, routes, leaving: () => leaving });

  const crossOrigin = config.corsOrigins.length > 0;
  const onRequest: RequestHandler = (request, response, sendContinue) => {
    adoptKey(request);
    const record = openRecord(request, requestId(request.headers["x-request-id"]));
    record.connection = connectionOf(response);
    options.untaken?.count(response, record);
    let continued = false;
    record.sendContinue =
      sendContinue &&
      (() => {
        continued = true;
        sendContinue();
      });
    const http1 = request.httpVersionMajor === 1;
    // A client that was not continued does not send its body: only a closed connection makes clear where the next request begins.
    if (http1 && (leaving || sendContinue !== undefined)) response.setHeader("connection", "close");
    response.once("close", () => closed(options, record, request, response));
    if (hasBody(request)) {
      const comes = () => sendContinue === undefined || continued;
      answerAfterBody(request, response, rest, { comes, atOnce: () => record.conversation });
    }
    if (transcode !== undefined && !crossOrigin && request.url?.startsWith("/v1/"))
      return answerWith(foreignRoute(foreign, pathOf(request)) ?? transcode, request, response, log);
    response.setHeader("x-request-id", record.requestId);
    const path = pathOf(request);
    const own = ownPaths.get(path);
    if (own !== undefined) request.url = own + (request.url ?? "").slice(path.length);
    const rpc = request.method === "POST" && !crossOrigin ? routes.get(own ?? path) : undefined;
    if (rpc !== undefined) return answerWith(rpc, request, response, log);
    app.routing(request as never, response as never);
  };

  const listener = await listen({
    host: config.host,
    port: config.port,
    incoming: options.incoming,
    tls: options.tls,
    onRequest,
    connectionsMax: config.connectionsMax,
    stallMs: config.streamIdleMs,
  });
  let closing: Promise<void> | undefined;

  async function close(drainMs: number) {
    leaving = true;
    await listener.drain(drainMs);
    const reason = unavailable("the server is stopping; send again", ErrorReason.SERVER_STOPPING);
    stopping.abort(reason);
    await listener.drain(lastWordsMs);
    listener.destroy();
    await app.close();
  }

  return {
    address: { ...listener.address, url: calledUrl(config.host, listener.address.port, options.tls !== undefined) },
    connections: listener.connections,
    async leave(ms) {
      leaving = true;
      if (ms > 0) await sleep(ms);
    },
    close: ({ drainMs }) => {
      closing ??= close(drainMs);
      return closing;
    },
  };
}

/** Logs a request, answered or not, and frees what it held. */
function closed({ log, bodies, ended }: PortOptions, record: RequestRecord, request: Request, response: Response) {
  // Without a head of an answer the client has gone before it was made; what is not over, such as a watch, it has given up.
  const status = response.headersSent ? response.statusCode : undefined;
  const code = status === undefined || request.aborted ? Code.Canceled : codeOfStatus(status);
  if (record.rpc !== undefined) record.code ??= code;
  const target = record.rpc === undefined ? `${request.method} ${pathOf(request)}` : undefined;
  logRequest(log, record, status, target);
  bodies?.release(record);
  ended?.(record, request, status);
}

function rpcOptions({ config, log, services, admit, bodies, readers }: PortOptions, stopping: AbortSignal): RpcOptions {
  return {
    services,
    admit,
    stopping,
    report(error, request) {
      const record = recordOf(request);
      if (record !== undefined) logUnexpected(log, record, error);
    },
    limits: {
      messageBytesMax: (service) => messageBytesMax(config, service),
      streamBytesMax: ({ typeName }) => (brief.names.test(typeName) ? brief.streamBytesMax : config.streamBytesMax),
      streamIdleMs: config.streamIdleMs,
      deadlineMsMax: config.deadlineMsMax,
      itemsMax: config.receiverItemsMax,
      bodies,
      readers,
    },
  };
}

function answerWith(route: RpcRoute, request: Request, response: Response, log: Logger) {
  route(request, response).catch((error) => {
    log.error(
      { requestId: recordOf(request)?.requestId, cause: { message: String(error), stack: error?.stack } },
      "no answer could be made",
    );
    if (response.headersSent) breakOff(response);
    else sendBody(response, 500, errorBody(13, "internal error"));
  });
}

/** The routes, on Fastify, which is asked where other origins are allowed. Paths of RPCs and /v1 leave it in their first hook, before it looks at content type or body. */
async function application(
  options: PortOptions & { rpcs: RpcOptions; routes: Map<string, RpcRoute>; leaving(): boolean },
): Promise<FastifyInstance> {
  const { config, log, routes, transcode, leaving, notReady } = options;
  const app = fastify({
    logger: false,
    frameworkErrors: (error, request, reply) => frameworkError(error, request, reply),
  });
  // No route of its own reads a body, and without a key no body is read.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _body, done) => done(null));
  app.addHook("onRequest", async (_request, reply) => void reply.headers(answerDefaults));
  app.setReplySerializer((payload) => `${JSON.stringify(payload)}\n`);
  const crossOrigin = config.corsOrigins.length > 0;
  if (crossOrigin) await allowOrigins(app, config.corsOrigins, options.aliases?.keyHeaders);

  function hand(route: RpcRoute, request: FastifyRequest, reply: FastifyReply) {
    reply.hijack();
    const { raw } = reply;
    if (crossOrigin) {
      const headers = reply.getHeaders();
      for (const name in headers) raw.setHeader(name, headers[name] as string);
    }
    answerWith(route, request.raw, raw, log);
  }

  function frameworkError(
    error: { statusCode?: number; message: string },
    request: FastifyRequest,
    reply: FastifyReply,
  ) {
    // The transcoder decodes paths by its own rules and words what is wrong with them.
    if (transcode !== undefined && request.raw.url?.startsWith("/v1/")) return hand(transcode, request, reply);
    sendError(reply, error.statusCode ?? 500, errorBody(3, error.message));
  }

  for (const [path, route] of routes) {
    app.all(path, { onRequest: (request, reply) => hand(route, request, reply) }, unreachable);
  }
  await serveStreams(app, options.rpcs);
  if (transcode !== undefined) {
    app.all("/v1/*", { onRequest: (request, reply) => hand(transcode, request, reply) }, unreachable);
  }
  const answerMissing = await servePages(app, options.tls?.caFile);
  options.morePages?.(app);
  app.get("/healthz", async () => ({ status: "alive", version }));
  app.get("/readyz", async (_request, reply) => {
    const reason = leaving() ? "stopping" : notReady();
    if (reason === undefined) return { status: "ready" };
    return reply.code(503).send({ status: "not ready", reason });
  });
  app.setNotFoundHandler({ preHandler: undefined as never }, (request, reply) => {
    if (transcode !== undefined && request.raw.url?.startsWith("/v1/")) return hand(transcode, request, reply);
    if (answerMissing(request, reply)) return reply;
    if (answerMissingRpc(pathOf(request.raw), request.raw, reply.raw)) return reply.hijack();
    return sendError(
      reply,
      404,
      errorBody(5, `there is nothing at ${pathOf(request.raw)}`, ErrorReason.PATH_NOT_FOUND),
    );
  });
  app.setErrorHandler((error: { statusCode?: number; message: string }, _request, reply) => {
    const status = error.statusCode ?? 500;
    if (status < 500) return sendError(reply, status, errorBody(3, error.message));
    return sendError(reply, status, errorBody(13, "internal error"));
  });
  await app.ready();
  return app;
}

function sendError(reply: FastifyReply, status: number, body: Buffer) {
  return reply.code(status).type("application/json").send(body);
}

async function unreachable() {
  throw new Error("the request was answered in its first hook");
}
