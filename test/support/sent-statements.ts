import { sessionName } from "../../src/db/session-name.ts";
import { type RanStatement, withoutValues } from "./statement-log.ts";

interface Sending {
  /** Called with each statement that the process sends. */
  listener?: ((sent: () => RanStatement) => void) | undefined;
}

const place = Symbol.for("belfry.sending");
const global = globalThis as { [place]?: Sending };
global[place] ??= {};

/** Who listens to what the process sends; collect-statements.ts tells it. */
export const sending: Sending = global[place];

/** Names of the connections that calls have, and nothing that the server does beside them. */
const ofCalls = [sessionName(), `${sessionName()}${withoutValues}`];

/** Runs `fn`, and returns the statements about a tenant that calls sent meanwhile, with their parameters. */
export async function sentStatements(tenantId: string, fn: () => Promise<unknown>): Promise<RanStatement[]> {
  const sent: RanStatement[] = [];
  sending.listener = (read) => {
    const statement = read();
    if (!statement.connections?.every((name) => ofCalls.includes(name))) return;
    if (statement.parameters?.some((value) => value?.includes(tenantId))) sent.push(statement);
  };
  try {
    await fn();
  } finally {
    sending.listener = undefined;
  }
  return sent;
}
