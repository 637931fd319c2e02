import { ConnectError } from "@connectrpc/connect";
import type { Db } from "../../../db/connect.ts";
import type { Troubles } from "./source.ts";

const charactersMax = 500;

/** What a clause makes of stored data. All else is of the transaction, the connection or the server, and ends the run. */
const ofStatement = /^(?:21|22|42|54|XX)/;

const isOwn = (error: unknown): error is Error =>
  error instanceof ConnectError || ofStatement.test((error as { code?: string }).code ?? "");

/** Does what is to be done for one trigger. Where its own statements fail nothing of it is done, and `troubles` says why. */
export async function apart<T>(
  tx: Db,
  name: string,
  troubles: Troubles,
  work: () => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const inOrder = (sent: PromiseLike<unknown>) => sent.then(undefined, () => undefined); // what follows fails as well
  inOrder(tx`savepoint stale_trigger`);
  try {
    const done = await work();
    inOrder(tx`release savepoint stale_trigger`);
    return done;
  } catch (error) {
    if (!isOwn(error)) throw error;
    await tx`rollback to savepoint stale_trigger`;
    const text = error instanceof ConnectError ? error.rawMessage : error.message;
    troubles[name] = `its data cannot be looked for: ${text}`.slice(0, charactersMax).toWellFormed();
    return [];
  }
}
