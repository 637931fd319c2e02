// Runs in a browser: page-server.ts serves it as it is, without its types.
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";

type Headers = Record<string, string>;

/** A client's way to the server over one of the protocols. */
function transportOf(url: string, headers: Headers, protocol: "connect" | "grpc-web", useBinaryFormat: boolean) {
  const withHeaders: Interceptor = (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };
  const make = protocol === "connect" ? createConnectTransport : createGrpcWebTransport;
  return make({ baseUrl: url, useBinaryFormat, interceptors: [withHeaders] });
}

/** Sends an event, finds it, and makes a mistake. What is refused is answered as code and message. */
async function tour(url: string, headers: Headers, protocol: "connect" | "grpc-web", useBinaryFormat: boolean) {
  const transport = transportOf(url, headers, protocol, useBinaryFormat);
  const events = createClient(EventQueryService, transport);
  try {
    const event = { name: `seen over ${protocol}`, timestamp: BigInt(Date.now()), dimensions: { source: "page" } };
    const { succeeded } = await createClient(DataReceiverService, transport).putEvents({ events: [event] });
    const { results } = await events.searchEvents({ query: {} });
    const wrong = await events.searchEvents({}).catch(ConnectError.from);
    const broken = wrong instanceof ConnectError ? wrong.findDetails(BadRequestSchema)[0]?.fieldViolations : undefined;
    return { succeeded, names: results.map(({ name }) => name), broken: broken?.map(({ field }) => field) };
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    return { code: Code[code], message: rawMessage };
  }
}

/** Watches until an event of this name is told; answers the names on the way. Resumes in the middle, with the cursor. */
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

const program = { tour, json, watch, serverSent };
/** What a test calls on the page. */
export type Program = typeof program;
Object.assign(globalThis, { program });
