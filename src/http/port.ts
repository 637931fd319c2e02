import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { adoptKey } from "../auth/key-headers.ts";
import { SettingError } from "../config/parsers.ts";
import type { Config } from "../config/settings.ts";
import { unavailable } from "../errors.ts";
import { errorBody, pathOf, type RpcRoute, sendBody } from "../protocols/error-body.ts";
import { transcoder } from "../protocols/json.ts";
import type { OwnReader } from "../protocols/message-reader.ts";
import { answerMissingRpc, type RpcOptions, type ServedService, unaryRoutes } from "../protocols/rpc-routes.ts";
import { serveStreams } from "../protocols/streams.ts";
import { openRecord, type RequestRecord, recordOf, requestId } from "../rpc/context.ts";
import { logRequest, logUnexpected } from "../rpc/log.ts";
import type { Pipeline } from "../rpc/pipeline.ts";
import type { RequestMemory } from "../rpc/request-memory.ts";
import type { Route } from "../transcoding/routes/binding.ts";
import { version } from "../version.ts";
import type { Request } from "../wire/body-reader.ts";
import { answerDefaults, breakOff, type Response } from "../wire/send-response.ts";
import { codeOfStatus } from "../wire/status.ts";
import { calledUrl, listenError } from "./address.ts";
import { allowOrigins } from "./cors.ts";
import { GrpcStream } from "./grpc-stream.ts";
import type { RequestHandler } from "./http-servers.ts";
import { httpListener, type Identity, type Taker } from "./listener.ts";
import { servePages } from "./pages/pages.ts";
import { connectionOf, type UnreadResponses } from "./unread-responses.ts";

/** Foreign names by which agents made for another service, with the same messages and methods, may call. */
export interface Aliases {
  /** Full names of services, foreign to ours. */
  services: ReadonlyMap<string, string>;
  /** Headers that carry the key where ours is absent, in lower case. */
  keyHeaders: readonly string[];
}

/** Routes of protocols that are not ours, by path; a path that ends in `/*` has all below it that no other one has. */
export type ForeignRoutes = ReadonlyMap<string, RpcRoute>;

/** Connections of another process's port. */
export interface Incoming {
  readonly address: { host: string; port: number };
  /** Hands each of them to `take`, unread. */
  each(take: Taker): void;
  /** Resolves once no further one comes. */
  end(): Promise<void>;
}

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
  /** Their routes below /v1/. */
  routes: readonly Route[];
  admit: Pipeline["admit"];
  /** A request is over, answered with this HTTP status or not. */
  ended(record: RequestRecord, request: Request, status: number | undefined): void;
  /** Counts the memory of all bodies. */
  bodies: RequestMemory;
  /** Counts the bytes of answers that wait for their clients. */
  untaken: UnreadResponses;
  /** RPCs whose requests are read in a way of their own. */
  readers: ReadonlyMap<DescMethod, OwnReader>;
  /** Why nothing can be served; undefined: it can. */
  notReady(): string | undefined;
  log: Logger;
  /** Protocols that are not ours; on their paths a key may also come as the password of `Authorization: Basic`. */
  foreign: ForeignRoutes;
  /** Adds further pages for people. */
  morePages(app: FastifyInstance): void;
  /** Foreign names of services and of the key's header. */
  aliases: Aliases;
  /** Aborted by `close` when running calls must end. */
  stopping: AbortController;
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

/** What is called without a key is asked in a few words. */
const brief = { names: /^grpc\.|\.SessionService$/, messageBytesMax: 16 * 1024, streamBytesMax: 1024 * 1024 };

/** Opens the port: gRPC, gRPC-Web, Connect, /v1, /healthz, /readyz and the pages for people over HTTP/1.1 and HTTP/2. @throws StartError when it cannot listen */
export async function openPort(options: PortOptions): Promise<Port> {
  const { config, incoming, services, aliases, stopping } = options;
  const state = { leaving: false };
  const foreignNames = aliasPaths(
    services.map(({ service }) => service),
    aliases.services,
  );
  const grpcRoutes = new Map<string, RpcRoute>();
  const listening = (onRequest: RequestHandler) =>
    httpListener({
      tls: options.tls,
      onRequest,
      grpcPaths: grpcRoutes,
      connectionsMax: config.connectionsMax,
      stallMs: config.streamIdleMs,
    });
  let listener = {} as ReturnType<typeof listening>;
  const app = fastify({
    logger: false,
    forceCloseConnections: false,
    frameworkErrors: (error, request, reply) => answerMalformed(error, request, reply),
    rewriteUrl: ({ url = "" }) => {
      const path = pathOf({ url });
      const own = foreignNames.get(path);
      return own === undefined ? url : own + url.slice(path.length);
    },
    serverFactory(route) {
      listener = listening((request, response, sendContinue) => {
        begin(options, state, request, response, sendContinue);
        if (request instanceof GrpcStream)
          answerWith(grpcRoutes.get(request.url) as RpcRoute, request, response, options.log);
        else route(request as never, response as never);
      });
      return listener.server as never;
    },
  });
  const { answerMalformed } = await addRoutes(app, options, stopping.signal, state, grpcRoutes);
  for (const [path, own] of foreignNames) {
    const route = grpcRoutes.get(own);
    if (route !== undefined) grpcRoutes.set(path, route);
  }
  await app.ready();
  if (incoming === undefined) {
    const { host, port } = config;
    await app.listen({ host, port }).catch((error) => {
      throw listenError(error, config);
    });
  } else incoming.each((socket) => listener.server.emit("connection", Object.assign(socket, { allowHalfOpen: true })));

  const { host } = config;
  const { port } = incoming?.address ?? (listener.server.address() as AddressInfo);
  let closing: Promise<void> | undefined;

  async function close(drainMs: number) {
    state.leaving = true;
    await incoming?.end();
    await listener.drain(drainMs);
    stopping.abort(unavailable("the server is stopping; send again", ErrorReason.SERVER_STOPPING));
    await listener.drain(lastWordsMs);
    listener.destroy();
    await app.close();
  }

  return {
    address: { host, port, url: calledUrl(config.host, port, options.tls !== undefined) },
    connections: listener.connections,
    async leave(ms) {
      state.leaving = true;
      if (ms > 0) await sleep(ms);
    },
    close: ({ drainMs }) => {
      closing ??= close(drainMs);
      return closing;
    },
  };
}

/**
 * Maps the paths of foreign services to those of ours.
 * @throws SettingError for a service that is not there, or a foreign name that is
 */
function aliasPaths(own: readonly DescService[], services: Aliases["services"]): Map<string, string> {
  const paths = new Map<string, string>();
  for (const [foreign, ours] of services) {
    const service = own.find(({ typeName }) => typeName === ours);
    if (service === undefined) throw new SettingError(`BELFRY_SERVICE_ALIASES: there is no service ${ours}`);
    if (own.some(({ typeName }) => typeName === foreign))
      throw new SettingError(`BELFRY_SERVICE_ALIASES: ${foreign} is a service of its own`);
    for (const { name } of service.methods) paths.set(`/${foreign}/${name}`, `/${ours}/${name}`);
  }
  return paths;
}

/** Opens the record of a request. */
function begin(
  options: PortOptions,
  { leaving }: { leaving: boolean },
  request: Request,
  response: Response,
  sendContinue: (() => void) | undefined,
) {
  adoptKey(request.headers, { aliases: options.aliases.keyHeaders, basic: () => false }, request.rawHeaders);
  const record = openRecord(request, requestId(request.headers["x-request-id"]));
  record.connection = connectionOf(response);
  record.sendContinue = sendContinue;
  options.untaken.count(response, record);
  // A client that was not continued does not send its body: only a closed connection makes clear where the next request begins.
  if (request.httpVersionMajor === 1 && (leaving || sendContinue !== undefined))
    response.setHeader("connection", "close");
  response.setHeader("x-request-id", record.requestId);
  response.once("close", () => ended(options, record, request, response));
}

/** Logs a request, answered or not, and frees what it held. */
function ended({ log, bodies, ended }: PortOptions, record: RequestRecord, request: Request, response: Response) {
  // Without a head of an answer the client has gone before it was made; what is not over, such as a watch, it has given up.
  const status = response.headersSent ? response.statusCode : undefined;
  const code = status === undefined || request.aborted ? Code.Canceled : codeOfStatus(status);
  if (record.rpc !== undefined) record.code ??= code;
  const target = record.rpc === undefined ? `${request.method} ${pathOf(request)}` : undefined;
  logRequest(log, record, status, target);
  bodies.release(record);
  ended(record, request, status);
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
      messageBytesMax({ typeName }) {
        if (brief.names.test(typeName)) return brief.messageBytesMax;
        // The data receiver takes larger ones.
        return typeName.startsWith("belfry.receiver.") ? config.receiverBytesMax : config.messageBytesMax;
      },
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

/**
 * Adds all routes. Paths of RPCs and /v1 leave Fastify in their first hook, before it looks at content type or body; unary calls of
 * gRPC over HTTP/2 go by `grpcRoutes` and never come to it.
 */
async function addRoutes(
  app: FastifyInstance,
  options: PortOptions,
  stopping: AbortSignal,
  state: { readonly leaving: boolean },
  grpcRoutes: Map<string, RpcRoute>,
) {
  const { config, log, foreign, aliases, notReady } = options;
  const rpcs = rpcOptions(options, stopping);
  const transcode = transcoder({ ...rpcs, routes: options.routes });
  // No route of its own reads a body, and without a key no body is read.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _body, done) => done(null));
  app.addHook("onRequest", async (_request, reply) => void reply.headers(answerDefaults));
  app.setReplySerializer((payload) => `${JSON.stringify(payload)}\n`);
  const crossOrigin = config.corsOrigins.length > 0;
  if (crossOrigin) await allowOrigins(app, config.corsOrigins, aliases.keyHeaders);

  function hand(route: RpcRoute, request: FastifyRequest, reply: FastifyReply) {
    reply.hijack();
    const { raw } = reply;
    if (crossOrigin) {
      const headers = reply.getHeaders();
      for (const name in headers) raw.setHeader(name, headers[name] as string);
    }
    answerWith(route, request.raw, raw, log);
  }

  function add(path: string, route: RpcRoute) {
    if (route.takesGrpc) grpcRoutes.set(path, route);
    app.all(path, { onRequest: (request, reply) => hand(route, request, reply) }, unreachable);
  }

  for (const [path, route] of unaryRoutes(rpcs)) add(path, route);
  for (const [path, route] of foreign) {
    const withKey: RpcRoute = (request, response) => {
      adoptKey(request.headers, { aliases: aliases.keyHeaders, basic: () => true }, request.rawHeaders);
      return route(request, response);
    };
    add(path, Object.assign(withKey, { takesGrpc: route.takesGrpc }));
  }
  add("/v1/*", transcode);
  await serveStreams(app, rpcs);
  const answerMissing = await servePages(app, options.tls?.caFile);
  options.morePages(app);
  app.get("/healthz", async () => ({ status: "alive", version }));
  app.get("/readyz", async (_request, reply) => {
    const reason = state.leaving ? "stopping" : notReady();
    if (reason === undefined) return { status: "ready" };
    return reply.code(503).send({ status: "not ready", reason });
  });
  app.setNotFoundHandler({ preHandler: undefined as never }, (request, reply) => {
    if (request.raw.url?.startsWith("/v1/")) return hand(transcode, request, reply);
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
  return {
    answerMalformed(error: { statusCode?: number; message: string }, request: FastifyRequest, reply: FastifyReply) {
      // The transcoder decodes paths by its own rules and words what is wrong with them.
      if (request.raw.url?.startsWith("/v1/")) return hand(transcode, request, reply);
      sendError(reply, error.statusCode ?? 500, errorBody(3, error.message));
    },
  };
}

function sendError(reply: FastifyReply, status: number, body: Buffer) {
  return reply.code(status).type("application/json").send(body);
}

async function unreachable() {
  throw new Error("the request was answered in its first hook");
}
