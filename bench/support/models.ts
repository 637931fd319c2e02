import type { ModelItem } from "../../src/entities/put.ts";
import { startChild } from "./child.ts";
import type { Database } from "./database.ts";

/** A server of ours, called over /v1. */
export interface ModelServer extends AsyncDisposable {
  /** @throws for an answer that is not 200. */
  // biome-ignore lint/suspicious/noExplicitAny: JSON of any shape
  call(path: string, body: object): Promise<any>;
  /** Puts models of the entities `from` to `to` that say something new; answers each request's time, ms. */
  put(from: number, to: number, options: { batch: number; connections: number }): Promise<number[]>;
}

let turn = 0;

/** Starts a server on a database. The entities that it is sent have a number, a site of 10 and a rack of 100. */
export async function modelServer(database: Database): Promise<ModelServer> {
  const child = startChild("server", "servers/belfry.ts", database.env);
  const { port } = await child.ask<{ port: number }>();

  async function call(path: string, body: object) {
    const headers = { ...database.key, "content-type": "application/json" };
    const url = `http://127.0.0.1:${port}/v1/${path}`;
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${path} answers ${answer.status}: ${text}`);
    return JSON.parse(text);
  }

  async function put(from: number, to: number, { batch, connections }: { batch: number; connections: number }) {
    turn += 1;
    const timesMs: number[] = [];
    let next = from;
    const send = async () => {
      while (next < to) {
        const begin = next;
        next = Math.min(begin + batch, to);
        const models = Array.from({ length: next - begin }, (_, i) => {
          const { timestampMs, dimensions, metadata } = modelOf(begin + i, turn);
          return { timestamp: String(timestampMs), dimensions, metadataFields: metadata };
        });
        const startMs = performance.now();
        const { failed } = await call("data-receiver/models", { models });
        timesMs.push(performance.now() - startMs);
        if (failed > 0) throw new Error(`${failed} models have failed`);
      }
    };
    await Promise.all(Array.from({ length: connections }, send));
    return timesMs;
  }

  return { call, put, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

/** The model of a numbered entity; each turn says something new. */
export function modelOf(number: number, turn: number): ModelItem {
  return {
    timestampMs: BigInt(Date.now()),
    dimensions: { host: `web-${number}`, site: `site-${number % 10}`, rack: `rack-${number % 100}` },
    metadata: { name: `Web server ${number}`, type: "host", os: "linux", patch: `p${turn}` },
  };
}

/** The value that so much of the times lie below. */
export function quantileOf(timesMs: readonly number[], share: number): number {
  const sorted = timesMs.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
