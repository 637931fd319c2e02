// Runs in a browser: page-server.ts bundles it.
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";
import { officialTour, officialWatch } from "./official-grpc-web.ts";

type Headers = Record<string, string>;

/** A client's way to the server over one of the protocols. */
function transportOf(url: string, headers: Headers, protocol: "connect" | "grpc-web", useBinaryFormat: boolean) {
  const make = protocol === "connect" ? createConnectTransport : createGrpcWebTransport;
  return make({ baseUrl: url, useBinaryFormat, interceptors: [withHeaders(headers)] });
}

function withHeaders(headers: Headers): Interceptor {
  return (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };
}

/** What a call failed with: its code, its message, and the fields that its details name. */
function failureOf(error: unknown) {
  const failure = ConnectError.from(error);
  const violations = failure.findDetails(BadRequestSchema)[0]?.fieldViolations ?? [];
  return { code: Code[failure.code], message: failure.rawMessage, fields: violations.map(({ field }) => field) };
}

/** Sends an event, finds it, and makes mistakes, in a call and in a stream. What is refused is answered as it failed. */
async function tour(url: string, headers: Headers, protocol: "connect" | "grpc-web", useBinaryFormat: boolean) {
  const transport = transportOf(url, headers, protocol, useBinaryFormat);
  const events = createClient(EventQueryService, transport);
  try {
    const event = { name: `seen over ${protocol}`, timestamp: BigInt(Date.now()), dimensions: { source: "page" } };
    const { succeeded } = await createClient(DataReceiverService, transport).putEvents({ events: [event] });
    const { results } = await events.searchEvents({ query: {} });
    const broken = await events.searchEvents({}).catch(failureOf);
    const brokenStream = await next(events.watchEvents({ query: {}, cursor: "x" })).catch(failureOf);
    return { succeeded, names: results.map(({ name }) => name), broken, brokenStream };
  } catch (error) {
    return { ...failureOf(error), stream: await next(events.watchEvents({ query: {} })).catch(failureOf) };
  }
}

/** The first message of a stream. */
async function next<T>(messages: AsyncIterable<T>): Promise<T | undefined> {
  for await (const message of messages) return message;
  return undefined;
}

/** Reads by GET, which Connect does where an RPC has no side effects; returns the methods that were sent. */
async function reads(url: string, headers: Headers, useBinaryFormat: boolean) {
  const methods: string[] = [];
  const send: typeof fetch = (input, init) => {
    methods.push(init?.method ?? "GET");
    return fetch(input, init);
  };
  const interceptors = [withHeaders(headers)];
  const transport = createConnectTransport({
    baseUrl: url,
    useBinaryFormat,
    useHttpGet: true,
    fetch: send,
    interceptors,
  });
  const { results } = await createClient(EventQueryService, transport).searchEvents({ query: {} });
  const broken = await createClient(EventQueryService, transport).searchEvents({}).catch(failureOf);
  const put = await createClient(DataReceiverService, transport).putEvents({ events: [] }).catch(failureOf);
  return { methods, results: results.length, broken, put };
}

/** Watches until an event of this name is reported; returns the names on the way. Resumes in the middle, with the cursor. */
async function watch(url: string, headers: Headers, protocol: "connect" | "grpc-web", binary: boolean, until: string) {
  const events = createClient(EventQueryService, transportOf(url, headers, protocol, binary));
  const names: string[] = [];
  let cursor = "";
  while (names.at(-1) !== until) {
    for await (const message of events.watchEvents({ query: {}, cursor })) {
      cursor = message.cursor;
      if (message.event === undefined) Object.assign(globalThis, { watching: true });
      else names.push(message.event.name ?? "");
      if (message.event !== undefined) break;
    }
  }
  return names;
}

/** The same by server-sent events, which are read with fetch: EventSource sends neither a body nor a key. */
async function serverSent(url: string, headers: Headers, until: string) {
  const answer = await fetch(`${url}/v1/events:watch`, {
    method: "POST",
    headers: { ...headers, accept: "text/event-stream", "content-type": "application/json" },
    body: '{"query":{}}',
  });
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (reader !== undefined && !text.includes(until)) {
    Object.assign(globalThis, { watching: text !== "" });
    text += (await reader.read()).value ?? "";
  }
  await reader?.cancel();
  return { type: answer.headers.get("content-type"), text };
}

/** Calls /v1 with fetch; what the browser does not let through is answered as `refused`. */
async function json(url: string, headers: Headers, method: string, path: string, body?: string) {
  const type = body === undefined ? {} : { "content-type": "application/json" };
  try {
    const answer = await fetch(url + path, { method, headers: { ...headers, ...type }, ...(body && { body }) });
    const requestId = answer.headers.get("x-request-id");
    // biome-ignore lint/suspicious/noExplicitAny: JSON of any shape, which the test itself looks into
    return { status: answer.status, body: (await answer.json()) as any, requestId };
  } catch (error) {
    return { refused: String(error) };
  }
}

const program = { tour, reads, json, watch, serverSent, officialTour, officialWatch };
/** What a test calls on the page. */
export type Program = typeof program;
Object.assign(globalThis, { program });
