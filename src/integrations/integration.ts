import type { IncomingHttpHeaders } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import type { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import type { Principal } from "../auth/principal.ts";
import type { Pace } from "../event-loop.ts";
import type { Sender } from "../receiver/put.ts";

/** A protocol of another tool: a folder of its own here, and a line in `table.ts`. */
export interface Integration {
  /** The name of its folder: in logs, metrics and refusals. */
  readonly name: string;
  readonly operations: readonly Operation[];
  /** The path below which the tool would answer every request; what no operation has is refused in the tool's form. */
  readonly below?: string;
  /**
   * An error in the form of the tool: what admission, the bounds of the body or the deadline refuse, what an operation threw, and
   * methods and paths that are none. `status` is what /v1 would answer, `headers` are the request's.
   */
  refuse(error: ConnectError, status: number, headers: IncomingHttpHeaders): Answer;
  /** The same over gRPC, which has a form of its own: with the code that the tool's senders understand. Absent: as it is. */
  refuseRpc?(error: ConnectError): ConnectError;
}

/** A way to call an operation: over HTTP, or the full name of a unary method of gRPC, `<package>.<Service>/<Method>`. */
export type OperationRoute =
  | { readonly method: "GET" | "POST" | "PUT" | "DELETE"; readonly path: string }
  | { readonly grpc: string };

/** One thing that the tool calls. */
export interface Operation {
  /** In logs, metrics and refusals, beneath the integration's. */
  readonly name: string;
  readonly routes: readonly OperationRoute[];
  readonly permission: Permission;
  /** Where its data goes: it is refused before its body while too much waits there. */
  readonly lane?: "models" | "metrics" | "events";
  /**
   * How its body is read: `unpacked` undoes gzip, br and deflate, `as sent` leaves that to the operation; absent: it has none.
   * Over gRPC messages are always unpacked.
   */
  readonly body?: "unpacked" | "as sent";
  /** Parameters of its query that are compiled: the tests with hostile input send them their worst. */
  readonly languages?: Readonly<Record<string, "MATCHER" | "EXPRESSION">>;
  /**
   * Reads the body, does what it asks, and writes the answer; over gRPC the answer's body is the message. What it throws
   * becomes `refuse`'s answer: a ConnectError by intent, all else as an internal error with its cause in the log.
   */
  serve(call: OperationCall, body: Buffer): Promise<Answer>;
}

/** What became of the items of a call, for metrics. */
export type ItemOutcome = "stored" | "refused" | "skipped";

/** A call that was admitted and whose body is read. */
export interface OperationCall {
  readonly tenantId: string;
  /** Whose key it came with, for what is audited. */
  readonly caller: { readonly principal: Principal; readonly requestId: string };
  /** The path of its request, without its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly query: URLSearchParams;
  readonly overGrpc: boolean;
  /** The database's time. */
  nowMs(): number;
  /** Aborts when the deadline passes, the client goes, or the server stops. */
  readonly signal: AbortSignal;
  /** For long work: its slices. */
  readonly pace: Pace;
  /** What is made of the body takes so much more memory. @throws code 8 when there is no room */
  reserve(bytes: number): void;
  /** For the receiver's functions. */
  readonly sender: Sender;
  readonly log: Logger;
  count(outcome: ItemOutcome, items: number): void;
}

/** An answer. A body in pieces is made while it is sent, piece by piece; what fails after the first one breaks it off. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | AsyncIterable<string>;
}

/** An answer in JSON. */
export function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { ...headers, "content-type": "application/json" }, body: `${JSON.stringify(value)}\n` };
}
