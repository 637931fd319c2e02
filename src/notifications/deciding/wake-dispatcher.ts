import { afterCommit } from "../../db/transaction.ts";
import type { Stage } from "./batch.ts";

/** Has this process's dispatcher send what is due, after the commit; what no process hears of is found by a look each second. */
export const wakeDispatcher: Stage = ({ tx, tenantId, wake, dueMs }) => {
  if (dueMs < Infinity) afterCommit(tx, () => wake(tenantId, dueMs));
  return {};
};
