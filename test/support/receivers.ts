import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

/** A request that a receiver got. */
export interface Received {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** What a receiver does with a request. */
export type Answerer = (request: Received, response: ServerResponse, socket: IncomingMessage["socket"]) => void;

/** An HTTP receiver on loopback that keeps what it gets. */
export interface HttpReceiver {
  url: string;
  port: number;
  received: Received[];
  /** What it does from now on. */
  answer(answerer: Answerer): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Answers with a status, a body and headers. */
export function answering(status: number, body = "", headers: Record<string, string> = {}): Answerer {
  return (_request, response) => void response.writeHead(status, headers).end(body);
}

/** Ways of answering that are no answer, or too much of one. */
export const misbehaving = {
  hangs: () => {},
  closesEarly: (_request, _response, socket) => socket.destroy(),
  breaksOff: (_request, response, socket) => {
    response.writeHead(200, { "content-length": "100" }).write("half");
    setTimeout(() => socket.destroy(), 20);
  },
  drips: (_request, response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write("."), 50);
    response.on("close", () => clearInterval(timer));
  },
  floods: (_request, response) => {
    response.writeHead(200);
    response.end("x".repeat(2 * 1024 * 1024));
  },
} satisfies Record<string, Answerer>;

export async function httpReceiver(host = "127.0.0.1", port = 0): Promise<HttpReceiver> {
  const received: Received[] = [];
  let answerer: Answerer = answering(200);
  const server = createServer(async (request, response) => {
    let body = "";
    request.setEncoding("utf8");
    for await (const chunk of request) body += chunk;
    const got = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body };
    received.push(got);
    answerer(got, response, request.socket);
  });
  await once(server.listen(port, host), "listening");
  const { port: own } = server.address() as AddressInfo;
  return {
    url: `http://${host}:${own}`,
    port: own,
    received,
    answer(next) {
      answerer = next;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A mail that a relay took. */
export interface ReceivedMail {
  from: string;
  to: string[];
  raw: string;
  secure: boolean;
  user: string | undefined;
}

/** A mail relay on loopback. */
export interface MailReceiver {
  port: number;
  mails: ReceivedMail[];
  /** Breaks all its connections. */
  cut(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function mailReceiver(options: SMTPServerOptions = {}): Promise<MailReceiver> {
  const mails: ReceivedMail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: options.onAuth === undefined ? ["AUTH"] : [],
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom === false ? "" : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString("utf8"),
          secure: session.secure,
          user: session.user,
        });
        callback();
      });
    },
    ...options,
  });
  server.on("error", () => {}); // connections that the test breaks
  const sockets = new Set<Socket>();
  server.server.on("connection", (socket: Socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const { port } = server.server.address() as AddressInfo;
  return {
    port,
    mails,
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
