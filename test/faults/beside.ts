import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../src/db/connect.ts";
import { post } from "./notifications.ts";
import type { Random } from "./random.ts";

const hourMs = 3_600_000;
type Headers = Record<string, string>;

/** Work that goes on beside the clients of the ledger. Rejects when something is wrong that no fault excuses. */
export interface Beside {
  name: string;
  /** One turn of it; `n` counts them. */
  turn(n: number): Promise<void>;
  restMs: number;
}

/** Work with a ledger of its own. */
export interface Part {
  readonly beside: Beside;
  /** How far it has come, in a few words. */
  progress(): string;
  /** When its last turn has ended: what is not as it must be, a line each. */
  compare(db: Db): Promise<string[]>;
}

export function startAll(all: readonly Beside[]) {
  let going = true;
  const turns = new Map(all.map(({ name }) => [name, 0]));
  const running = all.map(async ({ name, turn, restMs }) => {
    for (let n = 0; going; n++) {
      await turn(n);
      turns.set(name, n + 1);
      await sleep(restMs);
    }
  });
  const failed: string[] = [];
  for (const one of running) one.catch((error) => failed.push((error as Error).message));
  return {
    failed,
    turns,
    async stop() {
      going = false;
      await Promise.allSettled(running);
    },
  };
}

/** Questions about all parts. Under a fault they may be refused; a fault of ours, or a refusal of the question, is wrong. */
export function searches(urls: readonly string[], headers: Headers, { pick }: Random): Beside {
  const lastHour = () => ({ start: String(Date.now() - hourMs), end: String(Date.now()) });
  const range = () => ({ start: new Date(Date.now() - 4 * hourMs).toISOString(), end: new Date().toISOString() });
  const questions: (() => [path: string, body: object | undefined])[] = [
    () => ["events:search", { query: { severities: ["SEVERITY_ERROR"], pageInput: { limit: 50 } } }],
    () => ["events:count", { query: {}, fields: [{ field: "severity" }, { field: "status" }] }],
    () => ["events:frequency", { query: { timeRange: lastHour() }, fields: [{ field: "name" }], downsample: "300000" }],
    () => [
      "modelcontext/entities:search",
      { search_input: { query: { clause: { filter: { field: "name", operation: "OP_CONTAINS", value: "host" } } } } },
    ],
    () => [
      "metrics:search",
      {
        entityClause: { filter: { field: "source", operation: "OP_EQUALS", value: "host 1" } },
        timeRange: range(),
        downsample: { aggregator: "MEAN", period: "1m" },
      },
    ],
    () => ["audit-log", undefined],
  ];
  return {
    name: "searches",
    restMs: 50,
    async turn() {
      const [path, body] = pick(questions)();
      const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
      const answer = await fetch(`${pick(urls)}/v1/${path}`, {
        ...init,
        headers: { ...headers, "content-type": "application/json" },
        signal: AbortSignal.timeout(20_000),
      }).catch(() => undefined);
      const text = await answer?.text().catch(() => "");
      // An entity that is not there yet is no mistake.
      const excused = path === "metrics:search" && answer?.status === 404;
      if (answer !== undefined && ![200, 429, 503, 504, 409].includes(answer.status) && !excused)
        throw new Error(`${path} answers ${answer.status}: ${text}`);
    },
  };
}

/** Events that a rule sends on, one after the other. */
export function notifying(urls: readonly string[], headers: Headers): Beside & { readonly sent: number } {
  let sent = 0;
  return {
    name: "notifications",
    restMs: 100,
    get sent() {
      return sent;
    },
    async turn(n) {
      const event = {
        name: `disk ${n}`,
        timestamp: String(Date.now()),
        dimensions: { source: `host ${n % 50}` },
        severity: "SEVERITY_ERROR",
        status: "STATUS_OPEN",
      };
      await post([urls[n % 2] as string, urls[(n + 1) % 2] as string], headers, "data-receiver/events", {
        events: [event],
      });
      sent = n + 1;
    },
  };
}

/** Windows of some seconds, over entities that they share. */
export function windows(urls: readonly string[], headers: Headers, { int, pick }: Random): Beside {
  return {
    name: "windows",
    restMs: 500,
    async turn(n) {
      const clause = { filter: { field: "source", operation: "OP_EQUALS", value: `host ${int(0, 49)}` } };
      const schedule = { start: Date.now() + int(1000, 3000), duration: int(1000, 6000) };
      const specification = { name: `window ${n}`, schedule, maintenanceState: 300, query: { clause } };
      const answer = await fetch(`${pick(urls)}/v1/modelcontext/maintwindows`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ specification }),
        signal: AbortSignal.timeout(10_000),
      }).catch(() => undefined);
      const text = await answer?.text().catch(() => "");
      // A server that was paused reads it late.
      if (answer?.status === 400 && !text?.includes("in the past")) throw new Error(`window ${n}: ${text}`);
    },
  };
}
