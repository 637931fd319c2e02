import type { Resolver } from "node:dns/promises";
import type { Config } from "../../config/settings.ts";
import type { EventItem } from "../../events/ingest.ts";
import { type AccessTokens, accessTokens } from "./access-tokens.ts";
import { mailRelay, type Relay } from "./mail-relay.ts";
import { type Outbound, outbound } from "./outbound.ts";

/** No event is made: as many as may be were made of what has set off the rules. */
export const beyondChain = Symbol("beyond the bound of a chain");

/** What senders reach the world by, and what the operator has set for them. */
export interface SendEnvironment {
  readonly outbound: Outbound;
  /** Undefined: no mail relay is set. */
  readonly relay: Relay | undefined;
  /** Where this service is seen from outside, without a slash at its end. */
  readonly publicUrl: string;
  readonly incidentPagingUrl: string;
  readonly teamChatUrl: string;
  readonly accessTokens: AccessTokens;
  /**
   * Stores an event of this tenant, caused by these rules, the latest last, which `root` has set off; returns why it does not, if
   * so. May be repeated with the same item.
   */
  createEvent(
    tenantId: string,
    item: EventItem,
    chain: readonly string[],
    root: string,
  ): Promise<string | typeof beyondChain | undefined>;
  nowMs(): number;
}

type Settings = Pick<
  Config,
  "outboundAllow" | "outboundTimeoutMs" | "smtpUrl" | "smtpSender" | "publicUrl" | "incidentPagingUrl" | "teamChatUrl"
>;

/** What senders need besides the settings. */
export interface SendOptions extends Pick<SendEnvironment, "createEvent" | "nowMs"> {
  /** Where this service listens: its public address when none is set. */
  readonly ownUrl: string;
  /** What asks for names; absent: the name servers of the machine. */
  readonly resolver?: Resolver;
}

/** Opens the clients that senders use. Close `outbound` at the end. */
export function openSendEnvironment(settings: Settings, { ownUrl, resolver, ...given }: SendOptions): SendEnvironment {
  const { outboundTimeoutMs: timeoutMs, smtpUrl, smtpSender } = settings;
  const client = outbound({ allowed: settings.outboundAllow, timeoutMs, ...(resolver && { resolver }) });
  const relay =
    smtpUrl === undefined || smtpSender === undefined
      ? undefined
      : mailRelay({ url: smtpUrl, sender: smtpSender, timeoutMs });
  return {
    ...given,
    outbound: client,
    relay,
    publicUrl: settings.publicUrl ?? ownUrl,
    incidentPagingUrl: settings.incidentPagingUrl as string,
    teamChatUrl: settings.teamChatUrl as string,
    accessTokens: accessTokens(client, given.nowMs),
  };
}
