import type { Db } from "../db/connect.ts";
import type { WindowNotice } from "../notifications/deciding/windows.ts";

/** What else happens when windows begin and end: each in the transaction in which it does, so once in effect. */
export interface WindowHooks {
  /** Of windows that have something to report. */
  onRuns?(tx: Db, tenantId: string, notices: readonly WindowNotice[]): Promise<void>;
  /** Of entities, whose rows are locked, that have left the last window that they were in. */
  onReleased?(tx: Db, tenantId: string, entityIds: readonly Buffer[]): Promise<void>;
}
