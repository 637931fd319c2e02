import { Readable, Writable } from "node:stream";
import { connectionLost } from "./connection-errors.ts";
import { count, isFatal, type PooledConnection } from "./pooled-connection.ts";
import { forget, fromFirstRow, queryAdapter, type SentQuery, type Settling, type Tagged } from "./query-adapter.ts";

/** Whether PostgreSQL has refused a statement, and so knows that the transaction has failed; not where the driver has. */
const isOfPostgres = (error: unknown) => (error as { severity?: string } | null)?.severity !== undefined;
/** What PostgreSQL says of each statement after the one that has failed. */
const isAborted = (error: unknown) => (error as { code?: string } | null)?.code === "25P02";

/**
 * The driver sends a statement again whose prepared form is out of date. In a transaction that is of no use, and behind
 * its end the statement would take effect alone: it fails, and is prepared again when the transaction runs again.
 */
const sentOnce = {
  get: () => undefined,
  set(this: SentQuery, error: unknown) {
    this.cancelled = true; // the driver sends nothing that is
    this.reject(error);
  },
};

/**
 * postgres.js pauses its socket while rows of a copy wait for their reader, and resumes it when the stream asks for more. A stream that
 * has got its last row never asks again: without this the socket stays paused, no later statement gets its result, and with nothing else
 * to do the process ends in silence (exit code 13).
 */
function resumeAtEnd(rows: Readable, slot: PooledConnection): void {
  rows.once("end", () => {
    // `_read` resumes the socket that the driver uses, with TLS another one than ours. It is null once the connection is closed.
    if (!slot.closed) rows._read(0);
  });
}

/** A statement within a transaction: nothing may reach the driver once the connection is lost. */
function joined(query: SentQuery, slot: PooledConnection, { resolve, reject }: Settling): () => void {
  const { handler, canceller } = query;
  Object.defineProperty(query, "retried", sentOnce);
  const succeed = (value: unknown) => {
    forget(query);
    // What a copy fails with at its end the driver tells its statement alone, which was answered when the copy began.
    if (value instanceof Writable) query.reject = (error) => void value.destroy(error as Error);
    if (value instanceof Readable) resumeAtEnd(value, slot);
    resolve(fromFirstRow(value));
  };
  const failed = (error: unknown) => {
    forget(query);
    reject(error);
  };
  // Statements are sent one after the other, and the driver mixes up their answers when one of them is cancelled:
  // a cancelled one takes the whole transaction with it.
  const cancel = async () => {
    slot.spent = true;
    slot.fail?.(Object.assign(new Error("canceling statement of a transaction"), { code: "57014" }));
    if (query.active) slot.cancelling = canceller?.(query).catch(() => undefined);
    await slot.cancelling;
  };
  query.resolve = succeed;
  query.reject = failed;
  query.canceller = cancel;
  return () => {
    if (slot.closed) return reject(connectionLost());
    handler(query);
    count(slot, query);
  };
}

/**
 * Runs a transaction on a connection. `begin` goes with the first statement and `commit` with those that `fn` has sent and
 * not waited for: no turn of the wire is theirs. What is sent behind `commit` or `rollback` is refused: PostgreSQL would
 * run it alone.
 * @throws what `fn` throws; of statements that fail it is the first one, whichever `fn` has waited for
 */
export async function transact<T>(slot: PooledConnection, fn: (tx: Tagged) => Promise<T>): Promise<T> {
  const { promise: gone, reject } = Promise.withResolvers<never>();
  gone.catch(() => undefined);
  let over = false;
  slot.fail = (error) => {
    over = true;
    reject(error);
  };
  let failed: { error: unknown } | undefined;
  const noted = ({ resolve, reject: tell }: Settling): Settling => ({
    resolve,
    reject(error) {
      if (failed === undefined || isAborted(failed.error)) failed = { error };
      tell(error);
    },
  });
  const tx = queryAdapter(slot.client, (query, answer) => {
    const send = joined(query, slot, noted(answer));
    return () => (over ? answer.reject(connectionLost("the transaction has ended")) : send());
  });

  async function work(): Promise<T> {
    tx`begin`.catch(() => undefined); // what follows fails as well
    let value: T;
    try {
      value = await fn(tx);
      if (failed !== undefined && !isOfPostgres(failed.error)) throw failed.error;
    } catch (error) {
      // Nothing may be sent after answers that may be mixed up.
      if (!over) {
        const undone = tx`rollback`.execute();
        over = true;
        await undone.catch(() => {
          slot.spent = true;
        });
      }
      throw isAborted(error) ? (failed?.error ?? error) : error;
    }
    const done = tx`commit`.execute();
    over = true;
    const { command } = await done;
    if (command !== "COMMIT") throw failed?.error ?? connectionLost("the transaction was not committed");
    return value;
  }

  const worked = work();
  worked.catch(() => undefined);
  try {
    return await Promise.race([worked, gone]);
  } catch (error) {
    if (isFatal(error) || isFatal(failed?.error)) slot.spent = true;
    throw error;
  } finally {
    over = true;
  }
}
