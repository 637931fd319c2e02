// Codes of postgres.js for a connection that broke or never was; the SQLSTATEs of a server that goes, comes or is full.
const codes = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "CONNECT_TIMEOUT",
  "53300",
  "57P01",
  "57P02",
  "57P03",
]);

/** What Citus says, under the code of internal errors, where the node of a tenant is away, or goes while it works. */
const nodeLost =
  /^(?:failure on connection marked as essential|could not (?:connect to any active placements|commit transaction for shard)|connection to the remote node|server closed the connection unexpectedly)/;

/**
 * True when an error means that the connection to PostgreSQL, or its own to the tenant's node, is gone: nothing is known of a commit in work. Errors of
 * sockets (ECONNRESET and others) count only when the driver has put its statement on them: other servers fail too.
 */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return false;
  if (nodeLost.test(error.message)) return true;
  return codes.has(error.code) || error.code.startsWith("08") || (error.code.startsWith("E") && "query" in error);
}

/** The error and what caused it: query builders wrap the driver's. */
export function causes(error: unknown): Error[] {
  const errors: Error[] = [];
  for (let at = error; at instanceof Error && errors.length < 5; at = at.cause) errors.push(at);
  return errors;
}

/** Whether it is a node of a cluster that is away, and not the database that a command is connected to. */
export const isNodeLost = ({ message }: Error): boolean => nodeLost.test(message);

/** The error of a connection that is gone. */
export function connectionLost(message = "the connection to the database is lost"): Error {
  return Object.assign(new Error(message), { code: "CONNECTION_CLOSED" });
}
