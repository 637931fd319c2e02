import { getEventListeners } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type ContextValues, type HandlerContext } from "@connectrpc/connect";
import { clientLeft } from "./body-reader.ts";
import type { Response } from "./send-response.ts";
import { invalidValue } from "./status.ts";
import { type Sweep, sweep } from "./sweep.ts";

interface CallInit {
  method: DescMethod;
  /** What its handler reads as the protocol's name. */
  protocol: string;
  httpMethod: string;
  url: string;
  header: Headers;
  values: ContextValues;
  /** The time that the request asks for, kept to the millisecond. */
  timeoutMs: number | undefined;
  /** Whether the call ends after the longest time when the request asks for none. */
  bounded: boolean;
}

/** Starts calls; all of them abort when `shutdown` does. */
export function callStarter(timeoutMsMax: number, shutdown: AbortSignal | undefined): (init: CallInit) => Call {
  const start = timeStarter(shutdown);
  return (init) => start((live) => new Call(init, timeoutMsMax, live));
}

/** Starts the times of calls; all of them abort when `shutdown` does. */
export function timeStarter(shutdown: AbortSignal | undefined) {
  const live = sweep<CallTime>((call, nowMs) => {
    if (call.endMs <= nowMs) call.expire();
  });
  shutdown?.addEventListener("abort", () => {
    for (const call of live) call.abort(stopReason(shutdown));
  });
  return <T extends CallTime>(make: (live: Sweep<CallTime>) => T): T => {
    const call = make(live);
    if (shutdown?.aborted) call.abort(stopReason(shutdown));
    return call;
  };
}

/**
 * The time of a call, which its deadline, its client and the server end. A class because its getters then cost a call nothing: those
 * of a literal take as long as the rest of it. The signal is made when it is asked for.
 */
export class CallTime {
  /** On the clock of `performance.now()`. */
  readonly endMs: number;
  readonly #live: Sweep<CallTime>;
  readonly #timer: NodeJS.Timeout | undefined;
  #controller: AbortController | undefined;
  #reason: ConnectError | undefined;
  #waiting: ((reason: ConnectError) => void)[] | undefined;

  /** @param usualMs how long it lasts, to a quarter of a second, when the request asks for no time */
  constructor(askedMs: number | undefined, usualMs: number, live: Sweep<CallTime>) {
    this.endMs = performance.now() + (askedMs ?? usualMs);
    this.#timer = askedMs === undefined ? undefined : setTimeout(() => this.expire(), askedMs);
    this.#live = live;
    live.add(this);
  }

  /** The time that is left, ms. */
  readonly timeoutMs = (): number | undefined =>
    this.endMs === Number.POSITIVE_INFINITY ? undefined : this.endMs - performance.now();

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** For long work between two slices. @throws why the call was aborted, or that its time is over. */
  check(): void {
    if (performance.now() >= this.endMs) this.expire();
    if (this.#reason !== undefined) throw this.#reason;
  }

  /** Aborts the handler's signal, and ends what waits for it. */
  abort(reason: ConnectError): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    for (const reject of this.#waiting ?? []) reject(reason);
    this.#controller?.abort(reason);
  }

  /** Returns the outcome, or why the call was aborted when that comes first, as `untilAborted` does without a signal. */
  until<T>(outcome: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#reason !== undefined) reject(this.#reason);
      else if (this.#waiting === undefined) this.#waiting = [reject];
      else this.#waiting.push(reject);
      outcome.then(resolve, reject);
    });
  }

  /** Aborts because the time is over. */
  expire(): void {
    this.abort(new ConnectError("the deadline has passed", Code.DeadlineExceeded));
  }

  /** Returns the headers that the handler has set, if it has asked for them. */
  headersSet(): Headers | undefined {
    return undefined;
  }

  /** Returns the trailers that the handler has set, if it has asked for them. */
  trailersSet(): Headers | undefined {
    return undefined;
  }

  /** Ends the call: no timer stays behind, and the signal aborts if something still listens. */
  finish(): void {
    this.#live.delete(this);
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    // As over Connect, but only where something listens: an abort takes as long as the rest of a small call.
    if (this.#controller !== undefined && getEventListeners(this.#controller.signal, "abort").length > 0)
      this.abort(ended);
  }
}

/** One call of an RPC, and the context that its handler gets. Response headers and trailers are made when they are asked for. */
export class Call extends CallTime implements HandlerContext {
  readonly method: DescMethod;
  readonly service: DescService;
  readonly requestMethod: string;
  readonly url: string;
  readonly requestHeader: Headers;
  readonly protocolName: string;
  readonly values: ContextValues;
  #responseHeader: Headers | undefined;
  #responseTrailer: Headers | undefined;

  constructor(init: CallInit, timeoutMsMax: number, live: Sweep<CallTime>) {
    super(init.timeoutMs, init.bounded ? timeoutMsMax : Number.POSITIVE_INFINITY, live);
    const { method } = init;
    this.method = method;
    this.service = method.parent;
    this.protocolName = init.protocol;
    this.requestMethod = init.httpMethod;
    this.url = init.url;
    this.requestHeader = init.header;
    this.values = init.values;
  }

  get responseHeader(): Headers {
    this.#responseHeader ??= new Headers();
    return this.#responseHeader;
  }

  get responseTrailer(): Headers {
    this.#responseTrailer ??= new Headers();
    return this.#responseTrailer;
  }

  override headersSet(): Headers | undefined {
    return this.#responseHeader;
  }

  override trailersSet(): Headers | undefined {
    return this.#responseTrailer;
  }
}

/**
 * The promise's outcome, or why its call was aborted (deadline, client gone, server stopping) when that comes first, so that
 * an answer never waits for a handler that does not listen.
 */
export function untilAborted<T>(outcome: T, { signal }: Pick<HandlerContext, "signal">): Promise<Awaited<T>> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    // Also of an outcome that comes too late a rejection is taken: one that nothing takes ends the process.
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    const settled =
      <V>(settle: (value: V) => void) =>
      (value: V) => {
        signal.removeEventListener("abort", abort);
        settle(value);
      };
    Promise.resolve(outcome).then(settled(resolve), settled(reject));
  });
}

/**
 * Watches over a call whose client may go away, from before it is started, while its key is looked up, to its end: then the
 * call is aborted.
 */
export function watchClient(response: Response): { started(call: CallTime): void; check(): void; ended(): void } {
  let watched: CallTime | undefined;
  // No look at writableFinished: over HTTP/2 it is true of a stream that was reset, too.
  let left = false;
  const gone = () => {
    left = true;
    watched?.abort(clientLeft);
  };
  response.once("close", gone);
  return {
    started(call) {
      watched = call;
      if (left) gone();
    },
    check: () => watched?.check(),
    ended() {
      response.off("close", gone);
      watched?.finish();
    },
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
