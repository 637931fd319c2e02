import type { Db } from "../db/connect.ts";
import { isConnectionLost } from "../db/driver/connection-errors.ts";

/** Rows that were copied since the last report, and of which table. */
export interface CopyProgress {
  rows: number;
  table: string;
  /** The table's place among all; `of` is unknown while a file is read. */
  number: number;
  of?: number;
}

export interface CopyOptions {
  /** Stops the copy; what it has done is undone. */
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: CopyProgress) => void) | undefined;
}

/** Rejects with the signal's reason when it aborts; never settles otherwise. */
export function abortOf(signal: AbortSignal | undefined): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => undefined);
  if (signal?.aborted) reject(signal.reason);
  signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  return promise;
}

const limits = [
  "statement_timeout",
  "lock_timeout",
  "idle_in_transaction_session_timeout",
  "transaction_timeout",
] as const;

/**
 * Lifts the limits of time that a role or a database may have: a copy takes as long as its rows. PostgreSQL looks each second whether we are
 * still there, where its system can see that: else it would go on waiting for a lock for a process that has ended. For a transaction.
 */
export async function noLimits(tx: Db): Promise<void> {
  for (const limit of limits) await tx.unsafe(`set local ${limit} = 0`);
  await tx`
    select set_config('client_connection_check_interval', '1s', true)
    where version() ~ '(linux|darwin|bsd)'`;
}

const textMax = 300;

/** Text of elsewhere as a part of one line: without what a terminal would obey, and not too long. */
export function printable(value: unknown): string {
  const whole = typeof value === "string" ? value : `${JSON.stringify(value)}`;
  const text = JSON.stringify(whole.slice(0, textMax)).slice(1, -1).replaceAll('\\"', '"');
  // JSON leaves DEL and the control characters of 8 bits as they are.
  return text.replaceAll(
    /[\u007f-\u009f\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

interface Failures {
  ofFile(reason: string): Error;
  ofDatabase(reason: string): Error;
}

/** What an operator reads of an error: that of the file, of the database, or as it is. */
export function inOneLine(error: unknown, { ofFile, ofDatabase }: Failures): unknown {
  if (!(error instanceof Error)) return error;
  // The driver puts the statement on errors of its own sockets, which look like those of files.
  if ("query" in error || "severity" in error || isConnectionLost(error)) return ofDatabase(printable(error.message));
  return "syscall" in error ? ofFile(error.message) : error;
}
