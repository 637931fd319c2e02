import { causes, isConnectionLost, isNodeLost } from "../db/driver/connection-errors.ts";

/** One line for an operator whose command has failed because the database, or one node of it, is away; undefined for other errors. */
export function lostDatabase(error: unknown): string | undefined {
  const lost = causes(error).find(isConnectionLost);
  if (lost === undefined) return undefined;
  const said = lost.message.replaceAll(/\s+/g, " ").trim();
  if (!isNodeLost(lost)) return `the database cannot be reached (${said})`;
  return `a node of the database is away (${said}); new tenants and changes of the schema need every node, other commands that of their tenant`;
}
