import { paced } from "../../../event-loop.ts";

/** How much work may be done. */
export interface Effort {
  /** Asked again and again during work: whether it may go on, at once or after a turn of the loop. */
  goOn(): boolean | Promise<boolean>;
  /** Runs a statement, whose time does not count. */
  outside<T>(statement: () => Promise<T>): Promise<T>;
}

const sliceMs = 5;

/** Work of a tenant in slices, until it has taken `workMs`; the waits for its turns count, too. */
export function effort(tenantId: string, workMs = Infinity): Effort {
  const pace = paced(undefined, tenantId);
  let endMs = performance.now() + workMs;
  // The first slice begins at once: what is done within it holds no one up.
  let sliceEndMs = performance.now() + sliceMs;
  return {
    goOn() {
      const nowMs = performance.now();
      if (nowMs >= endMs) return false;
      if (nowMs < sliceEndMs) return true;
      const turn = pace();
      sliceEndMs = nowMs + sliceMs;
      return turn === undefined
        ? true
        : turn.then(() => {
            sliceEndMs = performance.now() + sliceMs;
            return performance.now() < endMs;
          });
    },
    async outside(statement) {
      const sinceMs = performance.now();
      try {
        return await statement();
      } finally {
        const tookMs = performance.now() - sinceMs;
        endMs += tookMs;
        sliceEndMs += tookMs;
      }
    },
  };
}
