import type { HandlerContext } from "@connectrpc/connect";
import { exhausted } from "../errors.ts";
import { type Holder, limiter } from "../limiter.ts";
import { callRecord, holderOfRecord, type RequestRecord } from "./context.ts";

/** The memory that requests take, those that still come and those in work. */
export interface RequestMemory {
  /** Before a body is read. @throws code 8 when one of this announced length (null: unknown) finds no room. */
  check(who: Holder, contentLength: string | null): void;
  /** A request takes so much more: its bytes come, and something is made of them. @throws code 8 when there is no room */
  reserve(record: RequestRecord, bytes: number): void;
  /** So much of it, or all, is taken no longer. */
  release(record: RequestRecord, bytes?: number): void;
  /** What they take together, bytes. */
  readonly used: number;
}

/** Bounds the memory of all requests together, with shares of tenants and keys beneath that. */
export function requestMemory(bytesMax: number): RequestMemory {
  const what = "requests are being read";
  const all = limiter({ max: bytesMax, what });
  const held: RequestMemory = {
    check(who, contentLength) {
      all.check(who, contentLength === null ? 0 : Number(contentLength));
    },
    reserve(record, bytes) {
      // It is answered already, so the memory would never be released.
      if (record.over) throw exhausted(`too many ${what}; send the request again`, 1);
      record.bodies = held;
      if (record.body === undefined) record.body = all.take(holderOfRecord(record), bytes);
      else record.body.more(bytes);
    },
    release: (record, bytes) => record.body?.release(bytes),
    get used() {
      return all.used;
    },
  };
  return held;
}

/** What a call holds of its body, for a handler that knows when it is done with a part of it. */
export interface HeldBody {
  bytes(): number;
  /** This many bytes are held no longer. */
  free(bytes: number): void;
}

/** The body of a call. */
export function heldBody(context: HandlerContext): HeldBody {
  const record = callRecord(context);
  return {
    bytes: () => record.body?.amount() ?? 0,
    free: (bytes) => record.bodies?.release(record, bytes),
  };
}
