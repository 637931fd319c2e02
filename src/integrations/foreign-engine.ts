import { ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import type { Principal } from "../auth/principal.ts";
import type { Config } from "../config/settings.ts";
import { paced } from "../event-loop.ts";
import { type Engine, engine } from "../protocols/engine.ts";
import type { IngestQueue } from "../receiver/ingest-queue.ts";
import type { RequestRecord } from "../rpc/context.ts";
import type { ForeignCalls } from "../rpc/pipeline.ts";
import type { RequestMemory } from "../rpc/request-memory.ts";
import type { Request } from "../wire/body-reader.ts";
import { CallTime, timeoutOf, type timeStarter } from "../wire/call.ts";
import type { Integration, ItemOutcome, Operation, OperationCall } from "./integration.ts";

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

/** An operation, and whether it is called over gRPC. */
export interface ServedOperation {
  readonly operation: Operation;
  readonly overGrpc: boolean;
}

/** Makes the engine of a tool's operations, which refuses and bounds them as it does RPCs. */
export function foreignEngine<Rpc extends ServedOperation = ServedOperation>(
  serving: Serving,
  integration: Integration,
): Engine<Rpc, CallTime> {
  const { bodies, config, foreign, room, startTime } = serving;
  const { deadlineMsMax } = config;
  const { name } = integration;
  return engine<Rpc, CallTime>(
    {
      async admit({ operation }, { header, request, ...exchange }) {
        const record = exchange.record as RequestRecord;
        record.integration = { name, operation: operation.name };
        const call = {
          name: `${name}/${operation.name}`,
          permission: operation.permission,
          room: (header: Headers, principal: Principal, of: RequestRecord) =>
            room(operation.lane, header, principal, of),
        };
        await foreign.admit(call, header, record, request);
        const askedMs = timeoutOf(request.headers, deadlineMsMax);
        return startTime((live) => new CallTime(askedMs, deadlineMsMax, live));
      },
      async work({ operation, overGrpc }, body, { record, request }, time) {
        const call = callOf(serving, integration, record as RequestRecord, request, time, overGrpc);
        const answer = await foreign.work(record as RequestRecord, time.signal, () =>
          operation.serve(call, body as Buffer),
        );
        (record as RequestRecord).code = 0;
        return answer;
      },
      fail(thrown, { record }, time) {
        if (!(thrown instanceof ConnectError)) return foreign.fail(thrown, record as RequestRecord, time?.signal);
        (record as RequestRecord).code = thrown.code;
        return thrown;
      },
    },
    bodies,
  );
}

/** The call of an operation, for what it does. */
export function callOf(
  { bodies, counts, lanes, log, nowMs }: Serving,
  { name }: Integration,
  record: RequestRecord,
  request: Request,
  time: CallTime,
  overGrpc: boolean,
): OperationCall {
  const principal = record.principal as Principal;
  const { tenantId } = principal;
  const { headers, url = "" } = request;
  return {
    tenantId,
    caller: { principal, requestId: record.requestId },
    path: url.replace(/\?.*$/s, ""),
    headers,
    query: new URLSearchParams(url.includes("?") ? url.slice(url.indexOf("?") + 1) : ""),
    overGrpc,
    nowMs,
    signal: time.signal,
    pace: paced(() => time.check(), tenantId, { holdsNothing: true }),
    reserve: (bytes) => bodies.reserve(record, bytes),
    sender: { lanes, tenantId, nowMs, abandoned: () => record.over },
    log,
    count: (outcome, items) => counts.note(name, outcome, items),
  };
}
