import { getEventListeners } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type ContextValues, type HandlerContext } from "@connectrpc/connect";
import { invalidValue } from "./status.ts";

/** One call of an RPC: the context that its handler gets, and how it ends. */
export interface Call {
  readonly context: HandlerContext;
  /** The headers that the handler has set, if it has asked for them. */
  responseHeader(): Headers | undefined;
  /** The promise's outcome, or why the call was aborted (deadline, client gone, server stopping) when that comes first. */
  untilAborted<T>(outcome: T): Promise<Awaited<T>> | T;
  /** Aborts the handler's signal. */
  abort(reason: ConnectError): void;
  /** Ends the call: no timer stays behind, and the signal aborts for those who still listen. */
  finish(): void;
}

interface CallInit {
  method: DescMethod;
  httpMethod: string;
  url: string;
  header: Headers;
  values: ContextValues;
  /** The time that the request asks for, kept to the millisecond. */
  timeoutMs: number | undefined;
  /** Whether the call ends after the longest time when the request asks for none. */
  bounded: boolean;
}

interface Live {
  readonly endMs: number;
  expire(): void;
  abort(reason: ConnectError): void;
}

// How late the longest time may end: it stops what hangs, and one timer for all calls costs none of them anything.
const sweepMs = 250;

/** Starts calls; all of them abort when `shutdown` does. */
export function callStarter(timeoutMsMax: number, shutdown: AbortSignal | undefined): (init: CallInit) => Call {
  const live = new Set<Live>();
  let sweeping = false;
  shutdown?.addEventListener("abort", () => {
    for (const call of live) call.abort(stopReason(shutdown));
  });

  function sweep(): void {
    sweeping = live.size > 0;
    if (sweeping) setTimeout(sweep, sweepMs).unref();
    const nowMs = performance.now();
    for (const call of live) if (call.endMs <= nowMs) call.expire();
  }

  return ({ method, httpMethod, url, header, values, timeoutMs: asked, bounded }) => {
    const startMs = performance.now();
    const timeoutMs = asked ?? (bounded ? timeoutMsMax : undefined);
    let controller: AbortController | undefined;
    let reason: ConnectError | undefined;
    let stopWaiting: ((error: ConnectError) => void) | undefined;
    let responseHeader: Headers | undefined;
    let responseTrailer: Headers | undefined;
    const timer = asked === undefined ? undefined : setTimeout(expire, asked);
    const self: Live = {
      endMs: timeoutMs === undefined ? Number.POSITIVE_INFINITY : startMs + timeoutMs,
      expire,
      abort,
    };
    live.add(self);
    if (!sweeping) {
      sweeping = true;
      setTimeout(sweep, sweepMs).unref();
    }
    if (shutdown?.aborted) reason = stopReason(shutdown);

    function expire(): void {
      abort(new ConnectError("the deadline has passed", Code.DeadlineExceeded));
    }

    function abort(error: ConnectError): void {
      if (reason !== undefined) return;
      reason = error;
      controller?.abort(reason);
      stopWaiting?.(reason);
    }

    const context: HandlerContext = {
      method,
      service: method.parent,
      requestMethod: httpMethod,
      url,
      requestHeader: header,
      protocolName: "http",
      values,
      timeoutMs: () => (timeoutMs === undefined ? undefined : startMs + timeoutMs - performance.now()),
      get signal() {
        if (controller === undefined) {
          controller = new AbortController();
          if (reason !== undefined) controller.abort(reason);
        }
        return controller.signal;
      },
      get responseHeader() {
        responseHeader ??= new Headers();
        return responseHeader;
      },
      get responseTrailer() {
        responseTrailer ??= new Headers();
        return responseTrailer;
      },
    };

    return {
      context,
      abort,
      responseHeader: () => responseHeader,
      untilAborted<T>(outcome: T) {
        if (!(outcome instanceof Promise)) return outcome;
        return new Promise<Awaited<T>>((resolve, reject) => {
          outcome.then(resolve, reject);
          if (reason === undefined) stopWaiting = reject;
          else reject(reason);
        });
      },
      finish() {
        live.delete(self);
        if (timer !== undefined) clearTimeout(timer);
        // As over Connect, but only where somebody listens: an abort takes as long as the rest of a small call.
        stopWaiting = undefined;
        if (controller !== undefined && getEventListeners(controller.signal, "abort").length > 0) abort(ended);
      },
    };
  };
}

const ended = new ConnectError("the call has ended", Code.Canceled);

function stopReason(signal: AbortSignal | undefined): ConnectError {
  const given: unknown = signal?.reason;
  return given instanceof ConnectError ? given : new ConnectError("the server is stopping", Code.Unavailable);
}

const grpcUnitMs: Record<string, number> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 0.001, n: 0.000001 };

/** The time that a request allows, ms, cut to `timeoutMsMax`; undefined when it names none. Throws code 3 when malformed. */
export function timeoutOf(headers: IncomingHttpHeaders, timeoutMsMax: number): number | undefined {
  const grpc = headers["grpc-timeout"];
  const connect = headers["connect-timeout-ms"];
  if (grpc === undefined && connect === undefined) return undefined;
  let timeoutMs = timeoutMsMax;
  if (grpc !== undefined) {
    const parts = /^([0-9]{1,8})([HMSmun])$/.exec(String(grpc));
    if (parts === null)
      throw invalidValue("", "the header grpc-timeout must be up to 8 digits and a unit of H, M, S, m, u, n");
    timeoutMs = Math.min(timeoutMs, Number(parts[1]) * (grpcUnitMs[parts[2] as string] as number));
  }
  if (connect !== undefined) {
    if (!/^[0-9]{1,10}$/.test(String(connect))) {
      throw invalidValue("", "the header connect-timeout-ms must be up to 10 digits");
    }
    timeoutMs = Math.min(timeoutMs, Number(connect));
  }
  return timeoutMs;
}
