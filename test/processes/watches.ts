import { readFileSync } from "node:fs";
import http2 from "node:http2";
import https from "node:https";
import type { Readable } from "node:stream";
import { createClient, type Transport } from "@connectrpc/connect";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { HttpVersion, Target } from "../support/clients.ts";

/** A watch of events that has begun. */
export interface OpenWatch {
  /** Resolves when it has reported an event of this name. */
  heard(name: string): Promise<void>;
  end(): void;
}

/** Over gRPC, gRPC-Web or Connect. */
export async function watchOver(transport: Transport): Promise<OpenWatch> {
  const abort = new AbortController();
  const stream = createClient(EventQueryService, transport).watchEvents({ query: {} }, { signal: abort.signal });
  const messages = stream[Symbol.asyncIterator]();
  await messages.next();
  return {
    async heard(name) {
      for (;;) {
        const { value, done } = await messages.next();
        if (done) throw new Error("the watch has ended");
        if (value.event?.name === name) return;
      }
    },
    end: () => abort.abort(),
  };
}

/** Over /v1, as lines of JSON or as server-sent events, on a connection of its own. */
export async function watchOverJson(
  target: Required<Target>,
  version: HttpVersion,
  headers: Record<string, string>,
): Promise<OpenWatch> {
  const { stream, end } = await (version === "2" ? over2 : over1)(target, {
    ...headers,
    "content-type": "application/json",
  });
  const pieces = stream.setEncoding("utf8")[Symbol.asyncIterator]();
  await pieces.next();
  return {
    async heard(name) {
      for (let text = ""; !text.includes(`"${name}"`); ) {
        const { value, done } = await pieces.next();
        if (done) throw new Error(`the watch has ended: ${text}`);
        text += value;
      }
    },
    end,
  };
}

const path = "/v1/events:watch";
const body = JSON.stringify({ query: {} });

async function over1({ url, ca }: Required<Target>, headers: Record<string, string>) {
  const request = https.request(url + path, { method: "POST", agent: false, ca: readFileSync(ca), headers });
  request.end(body);
  const stream = await new Promise<Readable>((resolve, reject) => request.on("response", resolve).on("error", reject));
  return { stream, end: () => void request.destroy() };
}

async function over2({ url, ca }: Required<Target>, headers: Record<string, string>) {
  const session = http2.connect(url, { ca: readFileSync(ca) });
  const stream = session.request({ ":method": "POST", ":path": path, ...headers });
  stream.end(body);
  return { stream, end: () => session.destroy() };
}
