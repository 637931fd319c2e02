/** Called again and again during long work: undefined while it may go on, else what to wait for first. */
export type Pace = () => Promise<void> | undefined;

/** How long one piece of work may run before others get their turn. */
const sliceMs = 5;

/** Work that waits for its next slice, by tenant, in the order of the tenants' turns. */
const waiting = new Map<string, (() => void)[]>();

/**
 * Cuts long work into slices, so that no tenant holds the event loop. Between two slices the loop serves its connections, and
 * tenants whose work waits take turns: one slice in each turn of the loop, however much long work there is.
 * Work begins with a full slice when nothing else waits, else with its first call of the pace.
 * @param tenantId whose work it is; absent: that of the server itself, which takes its turn as a tenant does
 * @param check called before each further slice; what it throws ends the work: the deadline has passed, the client has gone
 */
export function paced(check: () => void = () => {}, tenantId = ""): Pace {
  let untilMs = waiting.size > 0 ? 0 : performance.now() + sliceMs;
  return () => {
    if (performance.now() < untilMs) return undefined;
    return nextTurn(tenantId).then(() => {
      check();
      untilMs = performance.now() + sliceMs;
    });
  };
}

function nextTurn(tenantId: string): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.size === 0) setImmediate(serve);
    const own = waiting.get(tenantId);
    if (own === undefined) waiting.set(tenantId, [resolve]);
    else own.push(resolve);
  });
}

/** Lets one piece of work go on: it runs before the loop's next turn. */
function serve() {
  const next = waiting.entries().next().value;
  if (next === undefined) return;
  const [tenantId, queue] = next;
  const resume = queue.shift();
  waiting.delete(tenantId);
  if (queue.length > 0) waiting.set(tenantId, queue);
  resume?.();
  if (waiting.size > 0) setImmediate(serve);
}
