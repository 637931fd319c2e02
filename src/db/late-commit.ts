import type { Fragment } from "postgres";
import type { Db } from "./connect.ts";
import { inDistributed } from "./transaction.ts";

/**
 * Makes a condition that is always true, and with which the commit of its statement waits for no disk: a crash of the database may lose what it
 * wrote. A statement of its own would cost a round trip, and a transaction around both. Where tables lie distributed, nodes commit as
 * they are set up to.
 */
export const commitsLate = (db: Db): Fragment =>
  inDistributed(db) ? db`true` : db`(select set_config('synchronous_commit', 'off', true)) is not null`;
