import type { HandlerContext } from "@connectrpc/connect";
import { exhausted } from "../errors.ts";
import { callRecord, type RequestRecord } from "./context.ts";

/** The request bodies that this process holds in memory, those that still come and those of calls in work. */
export interface Bodies {
  /** Before a body is read. @throws code 8 when one of this announced length (null: unknown) finds no room. */
  check(contentLength: string | null): void;
  /** Bytes of a request have come. @throws code 8 when there is no room for them. */
  reserve(record: RequestRecord, bytes: number): void;
  /** That many bytes of a request, or all, are held no longer. */
  release(record: RequestRecord, bytes?: number): void;
}

/** Bounds the bytes of all bodies together: what is let in decides how much memory is used, not what is sent. */
export function bodies(bytesMax: number): Bodies {
  let held = 0;
  const full = () => exhausted("too many requests are being read; send the request again", 1);
  const all: Bodies = {
    check(contentLength) {
      const announced = contentLength === null ? 0 : Number(contentLength);
      // One that is larger than all of it fits when nothing else is there.
      if (held > 0 && held + announced > bytesMax) throw full();
    },
    reserve(record, bytes) {
      if (record.over) throw full(); // answered already: nobody would take them off again
      if (held > record.bodyBytes && held + bytes > bytesMax) throw full();
      held += bytes;
      record.bodyBytes += bytes;
      record.bodies = all;
    },
    release(record, bytes = record.bodyBytes) {
      const freed = Math.min(bytes, record.bodyBytes);
      held -= freed;
      record.bodyBytes -= freed;
    },
  };
  return all;
}

/** What a call holds of its body, for a handler that knows when it is done with a part of it. */
export interface HeldBody {
  bytes(): number;
  /** So many bytes are held no longer. */
  free(bytes: number): void;
}

/** The body of a call. */
export function heldBody(context: HandlerContext): HeldBody {
  const record = callRecord(context);
  return {
    bytes: () => record.bodyBytes,
    free: (bytes) => record.bodies?.release(record, bytes),
  };
}
