import type { LoadRequest } from "./load.ts";

/** A connection that sends the next request as soon as one is answered. */
export interface Connection {
  start(): void;
  /** Sends no more; resolves when all that was sent has been answered. */
  stop(): Promise<void>;
}

export interface ConnectionOptions {
  port: number;
  request: LoadRequest;
  streams: number;
  /** Notified of each answer, with the time its request was sent. */
  answered(startMs: number, good: boolean): void;
  /** Notified once something is wrong with the connection itself. */
  failed(error: Error): void;
}
