import type { DescMethod } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { Logger } from "pino";
import { permissionOf } from "../auth/permission.ts";
import type { Principal } from "../auth/principal.ts";
import type { Holder } from "../limiter.ts";
import type { Admit } from "./admission.ts";
import { isAudited, type RecordAudit, requestedResource } from "./audit.ts";
import { callRecord, holderOf, type RequestRecord } from "./context.ts";
import type { OpenStreams } from "./open-streams.ts";
import type { Passage } from "./passage.ts";

interface Options {
  enter: Admit;
  streams: OpenStreams;
  /** Refuses at once while the database is away, and bounds the calls in work. */
  gate: { run<T>(fn: () => Promise<T>, who: Holder): Promise<T> };
  log: Logger;
  fail: Passage["fail"];
  /** Keeps what a writing RPC was refused or failed with. The rows of those that succeed are their handlers' own. */
  recordAudit?: RecordAudit | undefined;
  /** Whether there is room for a call that is allowed, before its body is read. @throws code 8 when there is none. */
  room?(method: DescMethod, header: Headers, principal: Principal, record: RequestRecord): void;
}

/** What calls with a key pass: key, permission, room; the gate; the audit log. */
export function authenticatedPassage(options: Options): Passage & {
  /** A request is over: what was admitted and failed before its RPC was called gets its audit row here. */
  ended(record: RequestRecord): void;
} {
  const { enter, streams, gate, log, fail, recordAudit, room } = options;

  function auditFailure(method: DescMethod, record: RequestRecord, request: unknown, code: number) {
    const { principal, requestId, rpc = "" } = record;
    if (recordAudit === undefined || principal === undefined || !isAudited(method)) return;
    record.auditPending = undefined;
    recordAudit({ principal, rpc, resource: requestedResource(method, request), code, requestId });
  }

  return {
    fail,
    async admit(method, header, record, request) {
      const { rpc: name = "" } = record;
      const call = { name, permission: permissionOf(method), room: room?.bind(undefined, method) ?? (() => {}) };
      try {
        await enter(call, header, record, request);
        if (isAudited(method)) record.auditPending = method;
      } catch (error) {
        const answer = fail(error, record);
        auditFailure(method, record, undefined, answer.code);
        throw answer;
      }
    },
    run: (work, context) => gate.run(work, holderOf(context)),
    begin: (method, context) => ({
      ...streams.begin(method, callRecord(context).credential, holderOf(context), context.signal),
      context,
    }),
    succeeded(record) {
      if (record.auditPending !== undefined) log.error({ rpc: record.rpc }, "a write has left no audit row");
      record.auditPending = undefined;
    },
    failed(method, record, request, code) {
      // A call that was answered before (a deadline, a client that left) has its row.
      if (!record.over) auditFailure(method, record, request, code);
    },
    ended(record) {
      record.over = true;
      // A call that ended without an answer was given up by its client: code 1.
      if (record.auditPending !== undefined)
        auditFailure(record.auditPending, record, undefined, record.code || Code.Canceled);
    },
  };
}
