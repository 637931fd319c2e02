import { type Histogram, histogram } from "../histogram.ts";
import type { RequestRecord } from "../rpc/context.ts";

/** What came in, by the headers of its request. */
export type ProtocolName = "grpc" | "grpc-web" | "connect" | "json";

/** The protocol of a call of an RPC. */
export function protocolOf(url: string | undefined, contentType: string | undefined): ProtocolName {
  if (url?.startsWith("/v1/")) return "json";
  if (contentType?.startsWith("application/grpc-web")) return "grpc-web";
  return contentType?.startsWith("application/grpc") ? "grpc" : "connect";
}

/** Calls of one RPC over one protocol. */
export interface Calls {
  readonly rpc: string;
  readonly protocol: ProtocolName;
  /** By the number of their code. */
  readonly codes: Map<number, number>;
  /** How long they took, s. */
  readonly tookSec: Histogram;
}

/** Calls of one operation of another tool's protocol. */
export interface IntegrationCalls {
  readonly integration: string;
  readonly operation: string;
  /** By HTTP status. */
  readonly statuses: Map<number, number>;
  readonly tookSec: Histogram;
}

/** The requests that have ended since the start. */
export interface RequestCounts {
  note(record: RequestRecord, protocol: ProtocolName, status: number): void;
  calls(): Iterable<Calls>;
  integrations(): Iterable<IntegrationCalls>;
  /** Requests that called no RPC, by HTTP status; 0 is one whose client went before the answer. */
  others(): Iterable<[status: number, count: number]>;
}

/** Counts requests. RPCs are known by then, so that there are no more names than there are RPCs. */
export function requestCounts(): RequestCounts {
  const byRpc = new Map<string, Map<ProtocolName, Calls>>();
  const byIntegration = new Map<string, IntegrationCalls>();
  const others = new Map<number, number>();

  function integrationCalls({ name: integration, operation }: NonNullable<RequestRecord["integration"]>) {
    const key = `${integration}/${operation}`;
    const known = byIntegration.get(key) ?? { integration, operation, statuses: new Map(), tookSec: histogram() };
    byIntegration.set(key, known);
    return known;
  }

  function callsOf(rpc: string, protocol: ProtocolName): Calls {
    const byProtocol = byRpc.get(rpc) ?? new Map<ProtocolName, Calls>();
    byRpc.set(rpc, byProtocol);
    const known = byProtocol.get(protocol) ?? { rpc, protocol, codes: new Map(), tookSec: histogram() };
    byProtocol.set(protocol, known);
    return known;
  }

  return {
    note({ rpc, integration, code = 0, startMs }, protocol, status) {
      if (integration !== undefined) {
        const { statuses, tookSec } = integrationCalls(integration);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        return tookSec.note((performance.now() - startMs) / 1000);
      }
      if (rpc === undefined) return void others.set(status, (others.get(status) ?? 0) + 1);
      const { codes, tookSec } = callsOf(rpc, protocol);
      codes.set(code, (codes.get(code) ?? 0) + 1);
      tookSec.note((performance.now() - startMs) / 1000);
    },
    calls: () => [...byRpc.values()].flatMap((byProtocol) => [...byProtocol.values()]),
    integrations: () => byIntegration.values(),
    others: () => others,
  };
}
