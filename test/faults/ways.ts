import { setTimeout as sleep } from "node:timers/promises";
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { type HttpVersion, type Protocol, transport } from "../support/clients.ts";

type Named = Record<string, string>;

/** How a client reaches what serves: one server, or several as a load balancer does. */
export interface Way {
  transport(protocol: Protocol, headers: Named, version?: HttpVersion): Transport;
  /** A path with its leading slash. */
  fetch(path: string, init: RequestInit): Promise<Response>;
}

export const wayTo = (url: string): Way => ({
  transport: (protocol, headers, version) => transport({ url }, protocol, headers, version),
  fetch: (path, init) => fetch(`${url}${path}`, init),
});

/** A way to several servers. */
export interface Balanced extends Way {
  /** How often a connection was refused, so that the request went to another server. */
  readonly refused: number;
  /** What clients were notified, by code of RPCs and by status of HTTP: how many calls. */
  readonly told: ReadonlyMap<string, number>;
  /** How often it was RESOURCE_EXHAUSTED or 429. */
  readonly exhausted: number;
  stop(): void;
}

const lookMs = 50;

/** Whether nothing was sent: the other side did not take the connection. */
function isRefused(error: unknown): boolean {
  for (let at = error as (Error & { code?: unknown }) | undefined; at instanceof Error; at = at.cause as Error)
    if (at.code === "ECONNREFUSED") return true;
  return false;
}

/**
 * A way to servers as a load balancer with health checks has it: requests go to those in turn whose `/readyz` answers 200, over
 * connections that stay open. One is sent again, to another server, only where it never left: its connection was refused. gRPC's
 * own client (grpc-js) is given all addresses and left to itself; it sends again what a server has refused unread (GOAWAY).
 */
export function balanced(urls: readonly string[]): Balanced {
  const ready = new Set<string>();
  let stopped = false;
  let refused = 0;
  let turn = 0;
  const clients: Client[] = [];
  const told = new Map<string, number>();
  const tell = (what: string) => void told.set(what, (told.get(what) ?? 0) + 1);
  for (const url of urls) {
    void (async () => {
      for (; !stopped; await sleep(lookMs)) {
        const answer = await fetch(`${url}/readyz`, { headers: { connection: "close" } }).catch(() => undefined);
        await answer?.text().catch(() => undefined);
        if (answer?.status === 200) ready.add(url);
        else ready.delete(url);
      }
    })();
  }

  async function inTurn<T>(send: (url: string) => Promise<T>): Promise<T> {
    for (;;) {
      const up = urls.filter((url) => ready.has(url));
      const url = up[turn++ % up.length];
      if (url === undefined) {
        await sleep(lookMs);
        continue;
      }
      try {
        return await send(url);
      } catch (error) {
        if (!isRefused(error)) throw error;
        refused += 1;
        ready.delete(url);
      }
    }
  }

  async function heard<T>(call: Promise<T>): Promise<T> {
    try {
      const answer = await call;
      tell(answer instanceof Response ? `HTTP ${answer.status}` : "OK");
      return answer;
    } catch (error) {
      tell(error instanceof ConnectError ? Code[error.code] : "no answer");
      throw error;
    }
  }

  return {
    told,
    get exhausted() {
      return (told.get(Code[Code.ResourceExhausted]) ?? 0) + (told.get("HTTP 429") ?? 0);
    },
    get refused() {
      return refused;
    },
    transport(protocol, headers, version) {
      if (protocol === "grpc") {
        const client = grpcClient(urls);
        clients.push(client);
        const { unary, stream } = grpcTransport(client, headers);
        return { unary: (...call) => heard(unary(...call)), stream };
      }
      const each = new Map(urls.map((url) => [url, transport({ url }, protocol, headers, version)]));
      return {
        unary: (...call) => heard(inTurn((url) => (each.get(url) as Transport).unary(...call))),
        stream: (...call) => inTurn((url) => (each.get(url) as Transport).stream(...call)),
      };
    },
    fetch: (path, init) => heard(inTurn((url) => fetch(`${url}${path}`, init))),
    stop() {
      stopped = true;
      for (const client of clients) client.close();
    },
  };
}

function grpcClient(urls: readonly string[]): Client {
  return new Client(`ipv4:${urls.map((url) => new URL(url).host).join(",")}`, credentials.createInsecure(), {
    "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 500,
    "grpc.use_local_subchannel_pool": 1,
  });
}

/** grpc-js under the clients of Connect: unary calls. */
function grpcTransport(client: Client, headers: Named): Transport {
  return {
    unary<I extends DescMessage, O extends DescMessage>(
      method: DescMethodUnary<I, O>,
      _signal: AbortSignal | undefined,
      timeoutMs: number | undefined,
      _header: unknown,
      input: MessageInitShape<I>,
    ): Promise<UnaryResponse<I, O>> {
      const metadata = new Metadata();
      for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
      return new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          `/${method.parent.typeName}/${method.name}`,
          (message: MessageShape<I>) => Buffer.from(toBinary(method.input, message)),
          (bytes: Buffer) => fromBinary(method.output, bytes),
          create(method.input, input),
          metadata,
          { ...(timeoutMs !== undefined && { deadline: Date.now() + timeoutMs }) },
          (error: ServiceError | null, message?: MessageShape<O>) => {
            if (error !== null) return reject(new ConnectError(error.details, error.code as number as Code));
            const none = { header: new Headers(), trailer: new Headers() };
            resolve({ stream: false, service: method.parent, method, message: message as MessageShape<O>, ...none });
          },
        );
      });
    },
    stream() {
      throw new ConnectError("unary calls only", Code.Unimplemented);
    },
  };
}
