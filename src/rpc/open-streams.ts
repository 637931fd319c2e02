import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Callers } from "../auth/callers.ts";
import { permissionOf, permits } from "../auth/permission.ts";
import { unauthenticated, unavailable } from "../errors.ts";
import { type Holder, limiter } from "../limiter.ts";
import { abortError } from "./errors.ts";

/** A stream from its beginning to its end. */
export interface OpenStream {
  /** The promise's outcome, or why the stream was ended when that comes first. One at a time. */
  until<T>(outcome: Promise<T>): Promise<T>;
  /** It has come to its end. */
  close(): void;
}

/** All streams that are open. */
export interface OpenStreams {
  /**
   * A stream begins. It is ended when its key, its session or its permission goes, and when the signal aborts.
   * @throws code 8 when too many are open, code 14 for an answering one while the server stops
   */
  begin(method: DescMethod, key: string | null, who: Holder, signal: AbortSignal): OpenStream;
  count(): number;
  /** Ends those that answer, with code 14, and lets no further ones begin. */
  endAnswering(): void;
}

// With the age of what the verifier knows (src/auth/fresh-cache.ts) less than a second.
const recheckMs = 200;

interface Ending {
  method: DescMethod;
  key: string | null;
  end(error: ConnectError): void;
}

/** Bounds streams to `max`, and looks at their keys as long as they are open. */
export function openStreams(verify: Callers["verify"], max: number): OpenStreams {
  const places = limiter({ max, what: "streams are open" });
  const open = new Set<Ending>();
  let stopping = false;
  let checking = false;
  const stopped = () => unavailable("the server is stopping; send again", ErrorReason.SERVER_STOPPING);

  function checkLater() {
    if (checking) return;
    checking = true;
    setTimeout(recheck, recheckMs).unref();
  }

  async function recheck() {
    const byKey = Map.groupBy(open, ({ key }) => key);
    await Promise.all([...byKey].map(([key, streams]) => recheckKey(key, streams)));
    checking = false;
    if (open.size > 0) checkLater();
  }

  async function recheckKey(key: string | null, streams: Ending[]) {
    try {
      const principal = await verify(key);
      for (const { method, end } of streams) {
        if (!permits(permissionOf(method), principal))
          end(unauthenticated(`the API key may no longer call ${method.name}`, ErrorReason.KEY_INVALID));
      }
    } catch (error) {
      if (!(error instanceof ConnectError) || error.code !== Code.Unauthenticated) return; // the database is away
      for (const { end } of streams) end(error);
    }
  }

  return {
    begin(method, key, who, signal) {
      const answers = method.methodKind === "server_streaming";
      if (stopping && answers) throw stopped();
      const place = places.take(who);
      let failure: ConnectError | undefined;
      let reject: ((error: ConnectError) => void) | undefined;
      const stream: Ending = {
        method,
        key,
        end(error) {
          failure ??= error;
          reject?.(failure);
        },
      };
      const aborted = () => stream.end(abortError(signal));
      if (signal.aborted) aborted();
      else signal.addEventListener("abort", aborted, { once: true });
      open.add(stream);
      checkLater();
      return {
        until: (outcome) =>
          new Promise((resolve, fail) => {
            outcome.then(resolve, fail);
            reject = fail;
            if (failure !== undefined) fail(failure);
          }),
        close() {
          signal.removeEventListener("abort", aborted);
          open.delete(stream);
          place.release();
        },
      };
    },
    count: () => open.size,
    endAnswering() {
      stopping = true;
      for (const { method, end } of open) if (method.methodKind === "server_streaming") end(stopped());
    },
  };
}
