import { Resolver, lookup as systemLookup } from "node:dns/promises";
import { type BlockList, isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector, type Dispatcher, request } from "undici";
import { mayDial } from "./may-dial.ts";

const answerBytesMax = 1024 * 1024;
const answerHeaderBytesMax = 32 * 1024;

/** Why there is no answer. */
export type NoAnswer = "network" | "timeout" | "unresolved" | "refused_address" | "bad_address" | "bad_request";

/** No answer came. The message says why in a word or two, and holds nothing of the address. */
export class OutboundError extends Error {
  override name = "OutboundError";
  readonly reason: NoAnswer;
  constructor(reason: NoAnswer, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** What a receiver answered. */
export interface OutboundResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Its text, at most 1 MiB of it. */
  readonly body: string;
}

export interface OutboundRequest {
  readonly method: "GET" | "POST" | "PATCH";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** HTTP to the world outside. Redirects and proxies are not followed; one time limit spans name, connection and answer. */
export interface Outbound {
  /** To an address that a tenant gave: public ones only, and those that are allowed. @throws OutboundError */
  guarded(asked: OutboundRequest): Promise<OutboundResponse>;
  /** To an address that the operator gave: whatever it is. @throws OutboundError */
  trusted(asked: OutboundRequest): Promise<OutboundResponse>;
  /** Tells whether an IP address that a tenant gave may be dialled. */
  mayDial(address: string): boolean;
  close(): Promise<void>;
}

export interface OutboundOptions {
  /** Ranges that are not public and yet allowed. */
  readonly allowed: BlockList;
  readonly timeoutMs: number;
  /** What asks for names; absent: the name servers of the machine. */
  readonly resolver?: Resolver;
}

const refused = () =>
  new OutboundError("refused_address", "the address is not public (BELFRY_OUTBOUND_ALLOW names exceptions)");

/**
 * The addresses of a name, by a resolver that no slow name server of a tenant can tie up for others: the system's own
 * shares four threads with all files. It is asked for what name servers do not know, where inner addresses are allowed.
 */
async function addressesOf(name: string, { resolver, allowed }: Required<OutboundOptions>): Promise<string[]> {
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  const found = [v4, v6].flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  if (found.length > 0) return found;
  if (allowed.rules.length > 0) {
    const known = await systemLookup(name, { all: true }).catch(() => []);
    if (known.length > 0) return known.map(({ address }) => address);
  }
  const { code } = (v4 as PromiseRejectedResult).reason as { code?: string };
  throw new OutboundError("unresolved", `the name does not resolve (${code})`);
}

/** Resolves, refuses what may not be dialled, and hands on the rest: what is judged is what is dialled. */
function guardedLookup(options: Required<OutboundOptions>): LookupFunction {
  return (name, { all }, callback) => {
    const judged = addressesOf(name, options).then((addresses) => {
      const good = addresses.filter((address) => mayDial(address, options.allowed));
      if (good.length === 0) throw refused();
      return good.map((address) => ({ address, family: isIP(address) }));
    });
    judged.then(
      (good) => {
        if (all) callback(null, good);
        else callback(null, good[0]?.address ?? "", good[0]?.family);
      },
      (error) => callback(error, ""),
    );
  };
}

function guardedConnector(options: Required<OutboundOptions>): buildConnector.connector {
  const { allowed, timeoutMs } = options;
  const dial = buildConnector({ allowH2: false, timeout: timeoutMs, lookup: guardedLookup(options) });
  return (target, callback) => {
    // A literal address passes no lookup.
    if (isIP(target.hostname) !== 0 && !mayDial(target.hostname, allowed)) return callback(refused(), null);
    dial(target, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      if (socket.remoteAddress !== undefined && mayDial(socket.remoteAddress, allowed)) return callback(null, socket);
      socket.destroy();
      callback(refused(), null);
    });
  };
}

async function readCut(body: Dispatcher.ResponseData["body"]): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk.subarray(0, answerBytesMax - bytes));
    bytes += chunk.length;
    if (bytes >= answerBytesMax) break; // leaving the loop ends the connection
  }
  return Buffer.concat(chunks).toString("utf8");
}

function checkedUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
    throw new OutboundError("bad_address", "the address is not an http or https one");
  }
  if (url.username !== "" || url.password !== "") {
    throw new OutboundError("bad_address", "the address holds a user name or password; use a header");
  }
  return url;
}

/** What became of a request that has no answer, without a word of the address. */
function noAnswer(error: unknown): OutboundError {
  if (error instanceof OutboundError) return error;
  const { name, code, cause, errors } = error as Error & { code?: string; errors?: unknown[] };
  if (cause instanceof OutboundError) return cause;
  if (name === "TimeoutError" || name === "AbortError") return new OutboundError("timeout", "no whole answer in time");
  const known = code ?? (errors?.[0] as { code?: string } | undefined)?.code ?? name;
  if (/TIMEOUT|ETIMEDOUT/.test(known)) return new OutboundError("timeout", `no answer in time (${known})`);
  if (known === "UND_ERR_INVALID_ARG") return new OutboundError("bad_request", "a header is not allowed (by HTTP)");
  return new OutboundError("network", `the connection failed (${known})`);
}

/** The clients for what goes out. Close it, and requests in the air end. */
export function outbound(given: OutboundOptions): Outbound {
  const { timeoutMs } = given;
  const resolver = given.resolver ?? new Resolver({ timeout: 2000, tries: 3 });
  const shared = { maxHeaderSize: answerHeaderBytesMax, headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
  const guardedAgent = new Agent({ ...shared, connect: guardedConnector({ ...given, resolver }) });
  const trustedAgent = new Agent({ ...shared, connect: { allowH2: false, timeout: timeoutMs } });
  const ask = async (
    dispatcher: Agent,
    { method, url, headers, body, signal }: OutboundRequest,
  ): Promise<OutboundResponse> => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      const options = { dispatcher, method, headers: { "user-agent": "Belfry", ...headers }, signal: limit };
      const answer = await request(checkedUrl(url), {
        ...options,
        body: body === undefined ? null : Buffer.from(body),
      });
      return { status: answer.statusCode, headers: answer.headers, body: await readCut(answer.body) };
    } catch (error) {
      throw noAnswer(error);
    }
  };
  return {
    guarded: (asked) => ask(guardedAgent, asked),
    trusted: (asked) => ask(trustedAgent, asked),
    mayDial: (address) => mayDial(address, given.allowed),
    async close() {
      await Promise.all([guardedAgent.destroy(), trustedAgent.destroy()]);
    },
  };
}
