import { Code, ConnectError } from "@connectrpc/connect";
import { pathOf } from "../http/foreign-routes.ts";
import { answerHeaders } from "../http/port.ts";
import type { RpcRoute } from "../protocols/error-body.ts";
import { codeOfStatus } from "../protocols/status.ts";
import { type RequestRecord, recordOf } from "../rpc/context.ts";
import { checkEncoding, readBody } from "../transcoding/body.ts";
import { bodyReader, type Request } from "../wire/body-reader.ts";
import { CallTime, untilAborted, watchClient } from "../wire/call.ts";
import { copyHeaders } from "../wire/headers.ts";
import {
  breakOff,
  endResponse,
  type Response,
  sendWhole,
  writePieces,
  writeResponseHead,
} from "../wire/send-response.ts";
import { errorStatus, refusalOf } from "../wire/status.ts";
import type { Answer, Integration, Operation } from "./integration.ts";
import { admitCall, callOf, leftMs, type Serving } from "./serving.ts";

const noOverrides: ReadonlyMap<number, number> = new Map();

/** Serves the operations of one path, by their HTTP methods; of a path that has none, the tool's form of 404. */
export function httpRoute(
  serving: Serving,
  integration: Integration,
  operations: ReadonlyMap<string, Operation>,
): RpcRoute {
  const allow = [...operations.keys(), ...(operations.has("GET") ? ["HEAD"] : []), "OPTIONS"].join(", ");

  return async (request, response) => {
    const record = recordOf(request) as RequestRecord;
    const { method = "" } = request;
    const operation = operations.get(method === "HEAD" ? "GET" : method);
    if (operation !== undefined) return serveOperation(operation, record, request, response);
    if (operations.size > 0 && method === "OPTIONS")
      return send(request, response, { status: 204, headers: { allow } });
    const error =
      operations.size === 0
        ? refusalOf(Code.NotFound, 404, `there is nothing at ${pathOf(request)}`)
        : refusalOf(Code.Unimplemented, 405, `this path takes ${allow}, not ${method}`);
    if (operations.size > 0) error.metadata.set("allow", allow);
    await refuse(error, record, request, response);
  };

  async function serveOperation(operation: Operation, record: RequestRecord, request: Request, response: Response) {
    const time = serving.startTime((live) => new CallTime(undefined, serving.config.deadlineMsMax, live));
    const { signal } = time;
    const client = watchClient(response);
    client.started(time);
    try {
      await untilAborted(admitCall(serving, integration, operation, record, request), time);
      const body = await bodyOf(operation, record, request, time);
      const call = callOf(serving, integration, record, request, time, false);
      const answer = await serving.foreign.work(record, signal, () => operation.serve(call, body));
      record.code = codeOfStatus(answer.status);
      await send(request, response, answer, (part) => serving.foreign.work(record, signal, part));
    } catch (thrown) {
      if (response.headersSent) return breakOff(response);
      const error = thrown instanceof ConnectError ? thrown : serving.foreign.fail(thrown, record, signal);
      await refuse(error, record, request, response);
    } finally {
      client.ended();
    }
  }

  async function refuse(error: ConnectError, record: RequestRecord, request: Request, response: Response) {
    record.code = error.code;
    const { headers, ...answer } = integration.refuse(error, errorStatus(error, noOverrides), request.headers);
    const set: Record<string, string> = {};
    copyHeaders(error.metadata, set);
    await send(request, response, { ...answer, headers: { ...set, ...headers } });
  }

  function bodyOf({ body }: Operation, record: RequestRecord, request: Request, time: CallTime): Promise<Buffer> {
    if (body === undefined) return Promise.resolve(Buffer.alloc(0));
    const { receiverBytesMax: bytesMax, streamIdleMs: idleMs } = serving.config;
    const received = (bytes: number) => serving.bodies.reserve(record, bytes);
    const limits = { bytesMax, idleMs, received, totalMs: leftMs(time) };
    if (body === "unpacked") {
      checkEncoding(request.headers["content-encoding"]);
      return readBody(request, limits);
    }
    const tooLarge = () => refusalOf(Code.ResourceExhausted, 413, `the body may have at most ${bytesMax} bytes`);
    if (Number(request.headers["content-length"] ?? 0) > bytesMax) throw tooLarge();
    return bodyReader(request, { ...limits, tooLarge }).whole();
  }
}

/** Does a part of a call's work in its turn. */
type Work = <T>(part: () => Promise<T>) => Promise<T>;

async function send(
  request: Request,
  response: Response,
  { status, headers = {}, body = "" }: Answer,
  work: Work = (part) => part(),
): Promise<void> {
  const all = { ...answerHeaders(request), ...headers };
  if (typeof body === "string" || body instanceof Uint8Array) {
    if (status !== 204) {
      const client = { method: request.method, acceptEncoding: request.headers["accept-encoding"] };
      return sendWhole(response, status, all, body, client);
    }
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
