import type { ConnectError } from "@connectrpc/connect";
import type { Holder } from "../limiter.ts";
import { untilAborted } from "../wire/call.ts";
import type { Admit, AdmittedCall } from "./admission.ts";
import { holderOfRecord, type RecordedRequest, type RequestRecord } from "./context.ts";

/** Calls that are no RPCs of ours, with the bounds that RPCs have. They write nothing that the audit log has. */
export interface ForeignCalls {
  /** Before a byte of the body is read. @throws ConnectError 16, 7, 8, or 14 while the database is away. */
  admit(call: AdmittedCall, header: Headers, record: RequestRecord, request: RecordedRequest): Promise<void>;
  /** Does a part of an admitted call's work, in its turn, until the signal aborts. @throws the ConnectError to answer */
  work<T>(record: RequestRecord, signal: AbortSignal, part: () => Promise<T>): Promise<T>;
  /** The error to answer for one that was thrown outside of these; notes it in the record. */
  fail(error: unknown, record: RequestRecord, signal?: AbortSignal): ConnectError;
}

interface Options {
  admit: Admit;
  gate: { run<T>(fn: () => Promise<T>, who: Holder): Promise<T> };
  fail: ForeignCalls["fail"];
  /** Hears of each call that is admitted. */
  began(record: RequestRecord): void;
}

/** Builds them of what RPCs pass. */
export function foreignCalls({ admit, gate, fail, began }: Options): ForeignCalls {
  return {
    fail,
    async admit(call, header, record, request) {
      try {
        await admit(call, header, record, request);
      } catch (error) {
        throw fail(error, record);
      }
      began(record);
      record.sendContinue?.();
    },
    async work(record, signal, part) {
      try {
        return await untilAborted(gate.run(part, holderOfRecord(record)), { signal });
      } catch (error) {
        throw fail(error, record, signal);
      }
    },
  };
}
