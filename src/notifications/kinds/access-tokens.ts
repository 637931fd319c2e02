import { LRUCache } from "lru-cache";
import type { OAuthAuthorization } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { isSuccess, parsedObject, told } from "./attempt-outcome.ts";
import type { Outbound, OutboundResponse } from "./outbound.ts";
import { type FailureReason, reasonOf } from "./retry.ts";

const keptMax = 1000;
// Ends before the receiver's own end, so that a token is good for the whole try.
const marginMs = 60_000;
const defaultLifeSec = 1800;

/** No access token: why, and what the receiver said. */
export class NoToken extends Error {
  override name = "NoToken";
  readonly reason: FailureReason;
  constructor(reason: FailureReason, said: string) {
    super(said);
    this.reason = reason;
  }
}

/** A secret of the destination that its receiver exchanges now and then. */
export interface ExchangedSecret {
  /** What is stored by now; another server may have exchanged it. */
  read(): Promise<string>;
  /** Stores what it was exchanged for, before anything is done with it. */
  store(secret: string): Promise<void>;
}

/** How a try signs in at a destination that exchanges its secrets. */
export interface SignIn {
  /** Distinguishes destinations, across tenants. */
  readonly destinationKey: string;
  readonly refreshToken: ExchangedSecret;
  /** Names a secret that is not the destination's: no answer quotes it. */
  hide(secret: string): void;
}

/** What a token is asked for with. */
export interface Grant extends SignIn {
  readonly oauth: OAuthAuthorization;
  /** Where the token is sent: one that was got for another address is no token for this one. */
  readonly baseUrl: string;
  readonly signal: AbortSignal;
}

/** Access tokens of destinations, kept as long as they are good. One exchange at a time for each. */
export interface AccessTokens {
  /** @throws NoToken, OutboundError */
  get(grant: Grant): Promise<string>;
  /** The receiver refuses this one. */
  drop(grant: Grant, token: string): void;
}

interface Kept {
  readonly token: string;
  readonly untilMs: number;
}

/** Keeps them in memory: another server has its own. */
export function accessTokens(outbound: Outbound, nowMs: () => number): AccessTokens {
  const kept = new LRUCache<string, Kept>({ max: keptMax });
  const asking = new Map<string, Promise<Kept>>();
  // Another client, address or user than before has tokens of its own.
  const keyOf = ({ destinationKey, baseUrl, oauth: { clientId, clientSecret, tokenUrl, username } }: Grant) =>
    JSON.stringify([destinationKey, baseUrl, clientId, clientSecret, tokenUrl, username]);
  return {
    async get(grant) {
      const key = keyOf(grant);
      const known = kept.get(key);
      if (known !== undefined && known.untilMs > nowMs()) {
        grant.hide(known.token);
        return known.token;
      }
      let asked = asking.get(key);
      if (asked === undefined) {
        asked = exchange(outbound, grant, nowMs).finally(() => asking.delete(key));
        asking.set(key, asked);
      }
      const made = await asked;
      kept.set(key, made);
      grant.hide(made.token);
      return made.token;
    },
    drop(grant, token) {
      const key = keyOf(grant);
      if (kept.get(key)?.token === token) kept.delete(key);
    },
  };
}

/**
 * Exchanges the refresh token. When it is not taken, another server may have exchanged it meanwhile; else user name and
 * password, when they are given, ask for a new one.
 */
async function exchange(outbound: Outbound, grant: Grant, nowMs: () => number): Promise<Kept> {
  const { oauth, refreshToken, signal, hide } = grant;
  const ask = (form: Record<string, string>) =>
    outbound.guarded({
      method: "POST",
      url: oauth.tokenUrl,
      headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
      body: new URLSearchParams({ ...form, client_id: oauth.clientId, client_secret: oauth.clientSecret }).toString(),
      signal,
    });
  const refresh = (token: string) => ask({ grant_type: "refresh_token", refresh_token: token });
  const refused = ({ status }: OutboundResponse) => status === 400 || status === 401;

  const stored = await refreshToken.read();
  hide(stored);
  let used = stored;
  let answer = await refresh(stored);
  if (refused(answer)) {
    used = await refreshToken.read();
    hide(used);
    if (used !== stored) answer = await refresh(used);
  }
  if (refused(answer) && oauth.username !== "" && oauth.password !== "") {
    answer = await ask({ grant_type: "password", username: oauth.username, password: oauth.password });
  }
  return tokenOf(answer, used, grant, nowMs());
}

async function tokenOf(
  answer: OutboundResponse,
  used: string,
  { refreshToken, hide }: Grant,
  nowMs: number,
): Promise<Kept> {
  const body = parsedObject(answer.body);
  const { access_token: token, refresh_token: next, expires_in: lifeSec } = body ?? {};
  // A page that answers 200 may hold anything; a refusal says what is wrong.
  if (!isSuccess(answer)) {
    const reason = refusalReason(answer.status);
    throw new NoToken(reason, `no access token: ${told(answer)}`);
  }
  if (typeof token !== "string" || token === "") {
    throw new NoToken("unreadable", `no access token in the answer of tokenUrl (HTTP ${answer.status})`);
  }
  hide(token);
  if (typeof next === "string" && next !== "" && next !== used) {
    hide(next);
    await refreshToken.store(next);
  }
  const seconds = Number(lifeSec) > 0 ? Number(lifeSec) : defaultLifeSec;
  return { token, untilMs: nowMs + Math.max(seconds * 1000 - marginMs, 0) };
}

/** 400 of a token endpoint is what 401 is elsewhere: the grant is not good (any more). */
const refusalReason = (status: number): FailureReason => (status === 400 ? "unauthorized" : reasonOf(status));
