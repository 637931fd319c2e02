import { Code, type ConnectError } from "@connectrpc/connect";
import { clientOf, type Exchange, openBody, type Protocol, readBody } from "../protocols/engine.ts";
import { pathOf, type RpcRoute } from "../protocols/error-body.ts";
import type { RequestRecord } from "../rpc/context.ts";
import { recordOf } from "../rpc/context.ts";
import { checkEncoding } from "../transcoding/body.ts";
import type { CallTime } from "../wire/call.ts";
import { copyHeaders } from "../wire/headers.ts";
import { endResponse, sendWhole, writePieces, writeResponseHead } from "../wire/send-response.ts";
import { codeOfStatus, errorStatus, refusalOf } from "../wire/status.ts";
import type { Answer, Integration, Operation } from "./integration.ts";
import { foreignEngine, type ServedOperation, type Serving } from "./serving.ts";

const noOverrides: ReadonlyMap<number, number> = new Map();

/** Serves the operations of one path, by their HTTP methods; of a path that has none, the tool's form of 404. */
export function httpRoute(
  serving: Serving,
  integration: Integration,
  operations: ReadonlyMap<string, Operation>,
): RpcRoute {
  const allow = [...operations.keys(), ...(operations.has("GET") ? ["HEAD"] : []), "OPTIONS"].join(", ");
  const { receiverBytesMax: bytesMax, streamIdleMs: idleMs } = serving.config;
  const serve = foreignEngine(serving, integration);
  const protocol: Protocol<ServedOperation, CallTime> = {
    name: "http",
    async read({ operation: { body } }, exchange) {
      if (body === undefined) return Buffer.alloc(0);
      if (body === "as sent") return openBody(exchange, { bytesMax, idleMs }).whole();
      checkEncoding(exchange.request.headers["content-encoding"]);
      return readBody(exchange, { bytesMax, idleMs });
    },
    write(_operation, answer, exchange, { signal }) {
      const record = exchange.record as RequestRecord;
      record.code = codeOfStatus((answer as Answer).status);
      return send(exchange, answer as Answer, (part) => serving.foreign.work(record, signal, part));
    },
    refuse: (_operation, error, exchange) => refuse(error, exchange),
  };

  return async (request, response) => {
    const { method = "" } = request;
    const operation = operations.get(method === "HEAD" ? "GET" : method);
    if (operation !== undefined) return serve(protocol, { operation, overGrpc: false }, request, response);
    if (operations.size > 0 && method === "OPTIONS")
      return send({ request, response }, { status: 204, headers: { allow } });
    const error =
      operations.size === 0
        ? refusalOf(Code.NotFound, 404, `there is nothing at ${pathOf(request)}`)
        : refusalOf(Code.Unimplemented, 405, `this path takes ${allow}, not ${method}`);
    if (operations.size > 0) error.metadata.set("allow", allow);
    const record = recordOf(request);
    if (record !== undefined) record.code = error.code;
    await refuse(error, { request, response });
  };

  function refuse(error: ConnectError, ends: Ends) {
    const { headers, ...answer } = integration.refuse(error, errorStatus(error, noOverrides), ends.request.headers);
    const set: Record<string, string> = {};
    copyHeaders(error.metadata, set);
    return send(ends, { ...answer, headers: { ...set, ...headers } });
  }
}

/** A request and its response. */
type Ends = Pick<Exchange, "request" | "response">;

/** Does a part of a call's work in its turn. */
type Work = <T>(part: () => Promise<T>) => Promise<T>;

async function send(
  { request, response }: Ends,
  { status, headers = {}, body = "" }: Answer,
  work: Work = (part) => part(),
): Promise<void> {
  const all = { ...headers };
  if (typeof body === "string" || body instanceof Uint8Array) {
    if (status !== 204) return sendWhole(response, status, all, body, clientOf(request));
    writeResponseHead(response, status, all);
    return endResponse(response);
  }
  const pieces = body[Symbol.asyncIterator]();
  const next = () => work(() => pieces.next()).then((step) => (step.done === true ? undefined : step.value));
  try {
    const first = await next();
    writeResponseHead(response, status, all);
    if (request.method === "HEAD" || (await writePieces(response, first, next))) endResponse(response);
  } finally {
    pieces.return?.().catch(() => undefined);
  }
}
