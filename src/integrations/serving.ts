import type { Logger } from "pino";
import type { Principal } from "../auth/principal.ts";
import type { Config } from "../config/settings.ts";
import { paced } from "../event-loop.ts";
import type { IngestQueue } from "../receiver/ingest-queue.ts";
import type { RequestRecord } from "../rpc/context.ts";
import type { ForeignCalls } from "../rpc/foreign-calls.ts";
import type { RequestMemory } from "../rpc/request-memory.ts";
import type { Request } from "../wire/body-reader.ts";
import type { CallTime, timeStarter } from "../wire/call.ts";
import { requestHeaders } from "../wire/headers.ts";
import type { Call, Integration, ItemOutcome, Operation } from "./integration.ts";

/** What calls of integrations are served with. */
export interface Serving {
  config: Pick<Config, "receiverBytesMax" | "streamIdleMs" | "deadlineMsMax">;
  foreign: ForeignCalls;
  /** Whether there is room for a call, and for data in its lane. @throws code 8 */
  room(lane: Operation["lane"], header: Headers, principal: Principal, record: RequestRecord): void;
  bodies: RequestMemory;
  lanes: IngestQueue;
  nowMs(): number;
  log: Logger;
  counts: ItemCounts;
  startTime: ReturnType<typeof timeStarter>;
}

/** Items that came over protocols of other tools, since the start. */
export interface ItemCounts {
  note(integration: string, outcome: ItemOutcome, items: number): void;
  all(): Iterable<{ integration: string; outcome: ItemOutcome; items: number }>;
}

/** Empty counts. */
export function itemCounts(): ItemCounts {
  const all = new Map<string, { integration: string; outcome: ItemOutcome; items: number }>();
  return {
    note(integration, outcome, items) {
      if (items === 0) return;
      const key = `${integration} ${outcome}`;
      const known = all.get(key) ?? { integration, outcome, items: 0 };
      known.items += items;
      all.set(key, known);
    },
    all: () => all.values(),
  };
}

/** How long a call's body may take, ms. */
export const leftMs = (time: CallTime): number => Math.max(1, time.endMs - performance.now());

/** Admits a call by its headers. @throws the ConnectError that it is refused with */
export async function admitCall(
  { foreign, room }: Serving,
  { name }: Integration,
  operation: Operation,
  record: RequestRecord,
  request: Request,
): Promise<void> {
  record.integration = { name, operation: operation.name };
  const call = {
    name: `${name}/${operation.name}`,
    permission: operation.permission,
    room: (header: Headers, principal: Principal, of: RequestRecord) => room(operation.lane, header, principal, of),
  };
  await foreign.admit(call, requestHeaders(request.headers), record, request);
}

/** The call of an operation, for what it does. */
export function callOf(
  { bodies, counts, lanes, log, nowMs }: Serving,
  { name }: Integration,
  record: RequestRecord,
  request: Request,
  time: CallTime,
  overGrpc: boolean,
): Call {
  const { tenantId } = record.principal as Principal;
  const { headers, url = "" } = request;
  return {
    tenantId,
    headers,
    query: new URLSearchParams(url.includes("?") ? url.slice(url.indexOf("?") + 1) : ""),
    overGrpc,
    nowMs,
    signal: time.signal,
    pace: paced(() => time.check(), tenantId),
    reserve: (bytes) => bodies.reserve(record, bytes),
    sender: { lanes, tenantId, nowMs, abandoned: () => record.over },
    log,
    count: (outcome, items) => counts.note(name, outcome, items),
  };
}
