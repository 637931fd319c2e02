import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createHttp2Server, type Http2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { Code, ConnectError, createContextValues, type HandlerContext } from "@connectrpc/connect";
import { type TranscoderOptions, transcoder } from "../../src/protocols/json.ts";
import { requestMemory } from "../../src/rpc/request-memory.ts";
import { bindRoutes } from "../../src/transcoding/routes/binding.ts";
import { foreign, libraryService } from "./schema.ts";

/** What a handler of the library was called with. */
export interface Seen {
  rpc: string;
  input: Record<string, unknown>;
  context: HandlerContext;
}

/** A library on a port of its own. */
export interface Library {
  readonly url: string;
  readonly port: number;
  readonly seen: Seen[];
  readonly reported: unknown[];
  /** Calls it and parses what it answers. */
  json(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  close(): Promise<void>;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  body: any;
}

type Impl = (input: never, context: HandlerContext) => unknown;

/** Handlers of which most answer what they got; `overrides` replaces some. */
function handlers(seen: Seen[], overrides: Record<string, Impl>): Record<string, Impl> {
  const echo: Impl = (input) => input;
  const book = (name: string) => ({ name, title: `Title of ${name}`, pages: 12n });
  const all: Record<string, Impl> = {
    getBook: ({ name }: { name: string }) => book(name),
    listBooks: ({ shelf, pageSize }: { shelf: string; pageSize: number }) => ({
      books: Array.from({ length: pageSize }, (_, i) => book(`${shelf}/${i}`)),
    }),
    createBook: ({ book }: { book: unknown }) => book,
    updateBook: ({ book }: { book: unknown }) => book,
    patchShelf: echo,
    deleteBook: () => {
      throw new ConnectError("it is lent", Code.FailedPrecondition);
    },
    searchBooks: () => ({}),
    moveBook: ({ id }: { id: string }) => book(id),
    getThing: echo,
    getFile: echo,
    previewFile: echo,
    getTyped: echo,
    echo,
    upload: ({ content }: { content: unknown }) => content,
    raw: echo,
    pick: echo,
    swap: echo,
    async *watch({ count, failAfter }: { count: number; failAfter: number }) {
      for (let i = 0; i < count; i++) {
        if (failAfter !== 0 && i === failAfter) throw new ConnectError("torn", Code.Aborted);
        yield book(String(i));
      }
      if (count < 0) throw new ConnectError("none", Code.NotFound);
    },
    async *download({ count }: { count: number }) {
      for (let i = 0; i < count; i++) yield { contentType: "text/plain", data: Buffer.from(`part ${i}\n`) };
    },
    ...overrides,
  };
  return Object.fromEntries(
    Object.entries(all).map(([rpc, impl]) => [
      rpc,
      (input: never, context: HandlerContext) => {
        seen.push({ rpc, input, context });
        return impl(input, context);
      },
    ]),
  );
}

/** Starts a library over HTTP/1.1, or over HTTP/2 without TLS. */
export async function startLibrary(
  options: Partial<TranscoderOptions> & { impl?: Record<string, Impl>; http2?: boolean; deadlineMsMax?: number } = {},
): Promise<Library> {
  const seen: Seen[] = [];
  const reported: unknown[] = [];
  const { impl = {}, http2 = false, deadlineMsMax = 5000, ...rest } = options;
  const service = libraryService();
  const { routes } = bindRoutes([service]);
  const transcode = transcoder({
    routes,
    services: [{ service, implementation: handlers(seen, impl) as never }],
    registry: foreign,
    admit: async () => createContextValues(),
    limits: {
      messageBytesMax: () => 64 * 1024,
      streamBytesMax: () => Number.POSITIVE_INFINITY,
      streamIdleMs: 60_000,
      deadlineMsMax,
      itemsMax: Number.POSITIVE_INFINITY,
      bodies: requestMemory(Number.POSITIVE_INFINITY),
      readers: new Map(),
    },
    stopping: new AbortController().signal,
    report: (error) => reported.push(error),
    ...rest,
  });
  const server: Server | Http2Server = http2
    ? createHttp2Server((request, response) => void transcode(request, response))
    : createServer((request: IncomingMessage, response) => void transcode(request, response));
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    port,
    seen,
    reported,
    async json(method, path, body, headers = {}) {
      const init: RequestInit = { method, headers };
      if (body !== undefined) {
        init.body = typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body);
        if (headers["content-type"] === undefined) init.headers = { "content-type": "application/json", ...headers };
      }
      const response = await fetch(url + path, init);
      const text = await response.text();
      const parsed =
        response.headers.get("content-type") === "application/json" && text !== "" ? JSON.parse(text) : undefined;
      return { status: response.status, headers: response.headers, text, body: parsed };
    },
    close() {
      const done = Promise.withResolvers<void>();
      server.close(() => done.resolve());
      if ("closeAllConnections" in server) server.closeAllConnections();
      return done.promise;
    },
  };
}
