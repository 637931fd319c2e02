import type { Db } from "../db/connect.ts";

/** A run that begins or ends, and what is to be notified of it. */
export interface RunNotice {
  windowId: string;
  windowName: string;
  what: "start" | "end";
  /** When it was to happen, ms. */
  atMs: number;
  /** When the run began, ms. */
  runMs: number;
  message: string;
  /** The names of the rules through whose destinations the message goes. */
  rules: readonly string[];
}

/** What else happens when windows begin and end: each in the transaction in which it does, so once in effect. */
export interface WindowHooks {
  /** Of windows that have something to report. */
  onRuns?(tx: Db, tenantId: string, notices: readonly RunNotice[]): Promise<void>;
  /** Of entities, whose rows are locked, that have left the last window that they were in. */
  onReleased?(tx: Db, tenantId: string, entityIds: readonly Buffer[]): Promise<void>;
}
