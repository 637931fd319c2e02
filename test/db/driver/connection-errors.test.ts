import { expect, test } from "vitest";
import { isConnectionLost, isNodeLost } from "../../../src/db/driver/connection-errors.ts";

/** As the driver makes it of what PostgreSQL answers. */
const answered = (message: string, code: string) => Object.assign(new Error(message), { code });

test.each([
  "could not connect to any active placements",
  "connection to the remote node localhost:5433 failed with the following error: Connection refused",
  "failure on connection marked as essential: localhost:5433",
  "could not commit transaction for shard 102147 on at least one active node",
  "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally",
])("a node that is away, or goes while it works, is a lost connection: %s", (message) => {
  const error = answered(message, "XX000");
  expect(isConnectionLost(error)).toBe(true);
  expect(isNodeLost(error)).toBe(true);
});

test("other internal errors are not", () => {
  expect(isConnectionLost(answered("cache lookup failed for relation 16384", "XX000"))).toBe(false);
});
