import type { Pair } from "../http/listener.ts";
import type { PreparedDatabase } from "../prepared-database.ts";

/** In the environment of a serving process: what is a worker of another `node:cluster`, such as a process manager's, is none. */
export const servingMark = { SERVES_FOR_ITS_OWNER: "1" };

/** What a serving process is started with, by the one that owns the port. */
export interface Assignment {
  readonly process: number;
  /** How many serve. */
  readonly processes: number;
  readonly database: PreparedDatabase;
  /** The certificate of now; undefined without TLS. */
  readonly certificate: Pair | undefined;
  readonly caFile: string | undefined;
  /** The descriptor of the file in which it notes its requests. */
  readonly requestsFd: number | undefined;
}

/** From the owner of the port to a serving process. A message with a connection is `connection`. */
export type Order =
  | { readonly order: "serve"; readonly assignment: Assignment }
  | { readonly order: "connection" }
  | { readonly order: "certificate"; readonly pair: Pair }
  | { readonly order: "machine"; readonly ready: boolean }
  | { readonly order: "metrics"; readonly id: number }
  | { readonly order: "stop" }
  | { readonly order: "last-connection" };

/** From a serving process to the owner of the port. */
export type Report =
  | { readonly report: "serving" }
  | { readonly report: "failed"; readonly message: string }
  | { readonly report: "load"; readonly load: Load }
  | { readonly report: "metrics"; readonly id: number; readonly text: string };

/** What the owner of the port needs to know of a serving process. */
export interface Load {
  /** Connections that were handed to it since its start. */
  readonly taken: number;
  /** Connections that are open. */
  readonly open: number;
  /** Why it cannot serve; absent: it can. */
  readonly notReady?: string | undefined;
}
