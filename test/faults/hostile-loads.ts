import { setTimeout as sleep } from "node:timers/promises";
import { openHttp2, type RawAnswer, type RawRequest, type Target } from "../support/clients.ts";
import { openWatches } from "./watch-readers.ts";

type Headers = Record<string, string>;

/** What one tenant does at once and may do, and that costs the server much: made ready first. */
export interface HostileLoad {
  name: string;
  /** What `run` does once; resolves with what was wrong, a line each. May be run again. */
  prepare(target: Target, headers: Headers): Promise<{ run(): Promise<string[]>; close(): void }>;
}

const json = { "content-type": "application/json" };

/** Requests over several connections, in turns; what is refused for now is sent again, as clients do. */
function sender(target: Target) {
  const connections = Array.from({ length: 5 }, () => openHttp2(target));
  let next = 0;
  return {
    async send(request: RawRequest): Promise<RawAnswer> {
      next = (next + 1) % connections.length;
      const connection = connections[next] as (typeof connections)[number];
      for (;;) {
        const answer = await connection.send(request);
        if (answer.status !== 429) return answer;
        await sleep(300 + Math.random() * 500);
      }
    },
    close() {
      for (const { close } of connections) close();
    },
  };
}

/** A body of events that have not been sent before. */
function events(count: number, bodyBytes: number, names: number): Buffer {
  const nowMs = Date.now();
  const list = Array.from({ length: count }, (_, i) => ({
    name: `event ${i % names}`,
    timestamp: String(nowMs - count + i),
    severity: "SEVERITY_ERROR",
    status: "STATUS_OPEN",
    dimensions: { source: `host ${Math.floor(i / names)}` },
    body: "x".repeat(bodyBytes),
  }));
  return Buffer.from(JSON.stringify({ events: list }));
}

const succeeded = (answer: RawAnswer, count: number) => {
  const text = String(answer.body).slice(0, 200);
  return answer.status === 200 && text.includes(`"succeeded":${count},`) ? [] : [`${answer.status} ${text}`];
};

/** Watches, and a batch of events that all of them are sent. */
export function watchedBatch(watches: number, count = 200, bodyBytes = 2000): HostileLoad {
  return {
    name: `${watches.toLocaleString("en")} watches, then one batch of ${count} events of ${bodyBytes / 1000} KB`,
    async prepare(target, headers) {
      const readers = await openWatches(target, headers, watches);
      const { send, close } = sender(target);
      let sent = 0;
      return {
        async run() {
          const request = { path: "/v1/data-receiver/events", headers: { ...headers, ...json } };
          const answer = await send({ ...request, body: [events(count, bodyBytes, count)] });
          sent += count;
          await readers.until(sent, 600_000);
          return [...succeeded(answer, count), ...readers.ended];
        },
        close() {
          readers.close();
          close();
        },
      };
    },
  };
}

/** Watches that all go on at once from a cursor behind which there are some batches, as clients do when a server has started. */
export function resumedWatches(watches: number, batches = 2, count = 200, bodyBytes = 2000): HostileLoad {
  return {
    name: `${watches.toLocaleString("en")} watches that resume at once behind ${batches * count} events of ${bodyBytes / 1000} KB`,
    async prepare(target, headers) {
      const before = await openWatches(target, headers, 2);
      const cursor = before.cursor(1);
      before.close();
      const { send, close } = sender(target);
      for (let i = 0; i < batches; i += 1) {
        const body = [events(count, bodyBytes, count)];
        const answer = await send({ path: "/v1/data-receiver/events", headers: { ...headers, ...json }, body });
        if (answer.status !== 200) throw new Error(`events were not stored: ${answer.body}`);
      }
      return {
        async run() {
          const readers = await openWatches(target, headers, watches, new Array<string>(watches).fill(cursor));
          await readers.until(batches * count, 600_000);
          readers.close();
          return [
            ...readers.ended,
            ...readers.counts.filter((told) => told > batches * count).map((told) => `${told}`),
          ];
        },
        close,
      };
    },
  };
}

/** Senders of batches of events, each of which sends the next when one is answered. */
export function batches(together: number, each = 3, count = 1000): HostileLoad {
  return {
    name: `${together} batches of ${count.toLocaleString("en")} events at once`,
    async prepare(target, headers) {
      const { send, close } = sender(target);
      const request = { path: "/v1/data-receiver/events", headers: { ...headers, ...json } };
      return {
        async run() {
          const senders = Array.from({ length: together }, async () => {
            const wrong: string[] = [];
            for (let i = 0; i < each; i += 1)
              wrong.push(...succeeded(await send({ ...request, body: [events(count, 100, 100)] }), count));
            return wrong;
          });
          return (await Promise.all(senders)).flat();
        },
        close,
      };
    },
  };
}

/** Searches of a series of 100,000 points by 1 ms: some 3.5 MB of JSON each. */
export function metricSearches(together: number, points = 100_000): HostileLoad {
  return {
    name: `${together} metric searches of 3.5 MB by 1 ms at once`,
    async prepare(target, headers) {
      const { send, close } = sender(target);
      const all = { ...headers, ...json };
      const startMs = Date.now() - points - 60_000;
      const dimensions = { source: "host 1" };
      const model = { timestamp: String(startMs), dimensions, metadataFields: { name: "host 1" } };
      const models = [Buffer.from(JSON.stringify({ models: [model] }))];
      const stored = [await send({ path: "/v1/data-receiver/models", headers: all, body: models })];
      for (let from = 0; from < points; from += 10_000) {
        const metrics = Array.from({ length: 10_000 }, (_, i) => ({
          metric: "a.metric",
          timestamp: String(startMs + from + i),
          value: Math.sin(from + i),
          dimensions,
        }));
        const body = [Buffer.from(JSON.stringify({ metrics }))];
        stored.push(await send({ path: "/v1/data-receiver/metrics", headers: all, body }));
      }
      const wrong = stored.filter(({ body }) => !String(body).includes('"failed":0,'));
      if (wrong.length > 0) throw new Error(`points were not stored: ${wrong[0]?.body}`);
      const query = {
        entityClause: { filter: { field: "source", operation: "OP_EQUALS", value: "host 1" } },
        timeRange: { start: new Date(startMs).toISOString(), end: new Date(startMs + points).toISOString() },
        downsample: { aggregator: "MEAN", period: "1ms" },
      };
      const request = { path: "/v1/metrics:search", headers: all };
      const body = Buffer.from(JSON.stringify(query));
      return {
        async run() {
          const sent = Array.from({ length: together }, () => send({ ...request, body: [body] }));
          const answers = await Promise.all(sent);
          return answers.flatMap(({ status, body }) =>
            status === 200 && body.byteLength > 3_000_000 ? [] : [`${status} ${String(body.subarray(0, 200))}`],
          );
        },
        close,
      };
    },
  };
}

/** Pages of 1,000 events of 2 KB, all at once. */
export function eventPages(together: number): HostileLoad {
  return {
    name: `${together} pages of 1,000 events at once`,
    async prepare(target, headers) {
      const { send, close } = sender(target);
      const all = { ...headers, ...json };
      const body = [events(1000, 2000, 1000)];
      const stored = await send({ path: "/v1/data-receiver/events", headers: all, body });
      if (stored.status !== 200) throw new Error(`events were not stored: ${stored.body}`);
      const page = Buffer.from('{"query":{"pageInput":{"limit":1000}}}');
      return {
        async run() {
          const sent = Array.from({ length: together }, () =>
            send({ path: "/v1/events:search", headers: all, body: [page] }),
          );
          const answers = await Promise.all(sent);
          return answers.flatMap(({ status, body }) =>
            status === 200 ? [] : [`${status} ${String(body.subarray(0, 200))}`],
          );
        },
        close,
      };
    },
  };
}
