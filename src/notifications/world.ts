import type { EventItem } from "../events/ingest.ts";
import type { AccessTokens } from "./kinds/access-tokens.ts";
import type { Outbound } from "./outbound.ts";
import type { Relay } from "./relay.ts";

/** What senders reach the world by, and what the operator has set for them. */
export interface World {
  readonly outbound: Outbound;
  /** Undefined: no mail relay is set. */
  readonly relay: Relay | undefined;
  /** Where this service is seen from outside, without a slash at its end. */
  readonly publicUrl: string;
  readonly incidentPagingUrl: string;
  readonly teamChatUrl: string;
  readonly accessTokens: AccessTokens;
  /** Stores an event of this tenant, caused by these rules, the latest last. May be repeated with the same item. */
  createEvent(tenantId: string, item: EventItem, chain: readonly string[]): Promise<void>;
  nowMs(): number;
}
