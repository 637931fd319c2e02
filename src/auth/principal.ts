/** What kind of caller an API client is. */
export type ClientType = "DATA_INGEST" | "USER_MANAGEMENT" | "USER";

/** What a client of type USER may do. */
export type Role = "read_only_user" | "user" | "manager";

/** The caller: the client behind an API key, within its tenant. `role` is null unless `clientType` is USER. */
export interface Principal {
  readonly tenantId: string;
  readonly tenantName: string;
  readonly clientId: string;
  readonly clientName: string;
  readonly clientType: ClientType;
  readonly role: Role | null;
  readonly keyId: string;
  /** The part of the key that is not secret. */
  readonly keyPrefix: string;
  /** The public id of the console's session that the call came from; absent for calls with a key. */
  readonly sessionId?: string;
}
