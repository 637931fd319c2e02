import type postgres from "postgres";
import type { LimiterShare } from "../../limiter.ts";
import type { SentQuery } from "./query-adapter.ts";

export type Client = postgres.Sql<{ bigint: bigint }>;

/**
 * One connection: a client of the driver that may have no second one. The driver's own pool is not used, because what
 * it does when a connection breaks cannot be lived with: it writes to a socket that is null, outside of any promise, so
 * that the process dies; it goes on with connections that never send again; it hands the answers of a cancelled
 * statement to the next one. A client whose connection has closed is thrown away here.
 */
export interface PooledConnection {
  client: Client;
  /** The driver's own way to run a query on this client. */
  run: (query: SentQuery) => void;
  closed: boolean;
  /** Not to be used again, although it is open. */
  spent: boolean;
  retireMs: number;
  /** When its plans were last given up. */
  plannedMs: number;
  /** How many statements it has prepared. */
  statements: number;
  /** Fails what runs there now. */
  fail: ((error: unknown) => void) | undefined;
  /** Cancellations under way, which would hit the next statement. */
  cancelling: Promise<unknown> | undefined;
  /** The place among all that what runs there takes. */
  place: LimiterShare | undefined;
}

/** PostgreSQL's last word on a connection, which closes a moment later. */
export const isFatal = (error: unknown) =>
  ["FATAL", "PANIC"].includes((error as { severity?: string } | null)?.severity ?? "");

/** Counts what PostgreSQL and the driver keep of a statement that is sent. */
export function count(slot: PooledConnection, { prepare, prepared }: SentQuery): void {
  if (prepare && !prepared) slot.statements += 1;
}
