import type { LiveCertificate } from "./http/live-certificate.ts";
import type { Incoming } from "./http/port.ts";
import type { PreparedDatabase } from "./prepared-database.ts";

/** What a server is given by the process that owns its port. */
export interface OwnedParts {
  /** Its number. */
  readonly process: number;
  readonly database: PreparedDatabase;
  readonly tls: LiveCertificate | undefined;
  readonly incoming: Incoming;
  /** The descriptor of the file in which it notes its requests, for the line that reports its death; undefined: it does not. */
  readonly requestsFd: number | undefined;
  /** Whether any of the processes is ready. */
  machineReady(): boolean;
}

/** How a server is started. */
export interface How {
  readonly given?: OwnedParts;
  /** Its page is built again when its sources change. */
  readonly followSources?: boolean;
}
