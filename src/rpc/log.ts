import { isatty } from "node:tty";
import { Code } from "@connectrpc/connect";
import { type DestinationStream, type Logger, pino, symbols } from "pino";
import type { Principal } from "../auth/principal.ts";
import type { RequestRecord } from "./context.ts";
import { type LogWriter, logWriter } from "./log-writer.ts";
import { readableLine } from "./readable-line.ts";

/**
 * Opens the log, on standard output when no stream is given: one JSON object a line, never with a body, a key or a secret. A terminal
 * is shown lines that people read.
 * Lines are gathered and written at the latest after 100 ms; no call waits for them. Where several processes write to one output, each
 * line names its `process`.
 */
export function openLog(level: string, stream?: DestinationStream, process?: number | "owner"): Logger {
  const options = { level, base: process === undefined ? null : { process }, timestamp: true } as const;
  if (stream !== undefined) return pino(options, stream);
  if (level === "silent") return pino(options, { write() {} });
  const writer = logWriter(1, { shared: process !== undefined });
  return pino(options, isatty(1) ? readable(writer) : writer);
}

/** Writes the same lines for people. */
function readable(writer: LogWriter): LogWriter {
  return {
    write: (line) => writer.write(readableLine(line)),
    flush: writer.flush,
    get lost() {
      return writer.lost;
    },
  };
}

/** How many lines of a log were lost because they could not be written. */
export function lostLines(log: Logger): number {
  const { [symbols.streamSym]: stream } = log as unknown as Record<symbol, Partial<LogWriter>>;
  return stream?.lost ?? 0;
}

/** The name of a code as logs and audit rows show it, for example NOT_FOUND; 0 is OK. */
export function codeName(code: number): string {
  if (code === 0) return "OK";
  if (code === Code.Canceled) return "CANCELLED"; // gRPC's spelling
  return (Code[code] ?? "Unknown").replaceAll(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase();
}

const codeNames = Array.from({ length: 17 }, (_, code) => codeName(code));

/** The one line of a request that has ended. `target` names what was called when it was no RPC: method and path, without query. */
export function logRequest(
  log: Logger,
  record: RequestRecord,
  status: number | undefined,
  target: string | undefined,
): void {
  const { principal } = record;
  (principal === undefined ? log : logOf(principal, log)).info({
    requestId: record.requestId,
    rpc: record.rpc,
    integration: record.integration?.name,
    target,
    status,
    code: record.code === undefined ? undefined : codeNames[record.code],
    ms: Math.round((performance.now() - record.startMs) * 100) / 100,
  });
}

// The caller's fields are serialized once for many lines; principals live in the keys' cache.
const callers = new WeakMap<Principal, { log: Logger; own: Logger }>();

function logOf(principal: Principal, log: Logger): Logger {
  const known = callers.get(principal);
  if (known?.log === log) return known.own;
  const own = log.child({ client: principal.clientId, tenant: principal.tenantId });
  callers.set(principal, { log, own });
  return own;
}

/** The cause of an answer with code 13, for operators. */
export function logUnexpected(log: Logger, record: RequestRecord, error: unknown): void {
  log.error({ requestId: record.requestId, rpc: record.rpc, cause: causeOf(error) }, "unexpected error");
}

// A query builder's own error holds the statement's parameters: only its cause is logged.
function causeOf(error: unknown) {
  let at = error;
  while (at instanceof Error && at.cause instanceof Error) at = at.cause;
  if (!(at instanceof Error)) return { message: String(at) };
  return { name: at.name, message: at.message, state: "code" in at ? String(at.code) : undefined, stack: at.stack };
}
