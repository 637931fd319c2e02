import { cancelQuery } from "./query-adapter.ts";

/**
 * The answer of a statement that PostgreSQL stops when `signal` aborts.
 * @throws the signal's reason, once the statement has ended; without an abort as the statement itself
 */
export async function cancelOn<T>(query: PromiseLike<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await query;
  signal.throwIfAborted();
  let cancelled: Promise<void> | undefined;
  const cancel = () => {
    cancelled = cancelQuery(query);
  };
  signal.addEventListener("abort", cancel, { once: true });
  try {
    return await query;
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener("abort", cancel);
    await cancelled;
  }
}
