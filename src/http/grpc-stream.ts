import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { discardRest, type Http2Request } from "../wire/body-reader.ts";
import type { Http2Response } from "../wire/send-response.ts";
import { mayWrite } from "./unread-responses.ts";

type Listener = (piece: Buffer) => void;

const ignored = () => {}; // "close" follows

/**
 * Reads and answers one unary gRPC call on its HTTP/2 stream: request and response in one. Node's own pair for a stream is two more
 * streams with listeners of their own. A class because its getters then cost a call nothing.
 */
export class GrpcStream implements Http2Request, Http2Response {
  readonly method = "POST";
  readonly httpVersion = "2.0";
  readonly httpVersionMajor = 2;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: string[];
  readonly stream: ServerHttp2Stream;
  statusCode = 200;
  readonly #early: OutgoingHttpHeaders = {};
  #head: unknown[] = [];
  #trailers: OutgoingHttpHeaders | undefined;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: string[]) {
    this.stream = stream;
    this.headers = headers;
    this.rawHeaders = rawHeaders;
    this.url = headers[":path"] as string;
    stream.on("error", ignored);
  }

  get socket(): Socket {
    return this.stream.session?.socket as Socket;
  }

  get aborted(): boolean {
    return this.stream.aborted;
  }

  get complete(): boolean {
    return this.stream.readableEnded || this.stream.destroyed;
  }

  get readableEnded(): boolean {
    return this.stream.readableEnded;
  }

  get destroyed(): boolean {
    return this.stream.destroyed;
  }

  get headersSent(): boolean {
    return this.stream.headersSent;
  }

  on(event: string, listener: Listener): this {
    this.stream.on(event, listener);
    return this;
  }

  once(event: string, listener: Listener): this {
    this.stream.once(event, listener);
    return this;
  }

  off(event: string, listener: Listener): this {
    this.stream.off(event, listener);
    return this;
  }

  pause(): this {
    this.stream.pause();
    return this;
  }

  resume(): this {
    this.stream.resume();
    return this;
  }

  writeContinue(): void {
    this.stream.additionalHeaders({ ":status": 100 });
  }

  setHeader(name: string, value: string): void {
    this.#early[name] = value;
  }

  getHeader(name: string): string {
    return this.#early[name] as string;
  }

  writeHead(status: number, headers: OutgoingHttpHeaders): void {
    this.statusCode = status;
    // A list: Node copies an object, which takes as long as to write the headers.
    const head: unknown[] = [":status", status];
    for (const name in this.#early) if (headers[name] === undefined) head.push(name, this.#early[name]);
    for (const name in headers) head.push(name, headers[name]);
    this.#head = head;
  }

  addTrailers(trailers: OutgoingHttpHeaders): void {
    this.#trailers = trailers;
  }

  end(last?: string | Uint8Array): void {
    const { stream } = this;
    if (stream.destroyed || stream.closed || !mayWrite(this, last)) return;
    if (!this.complete) discardRest(this);
    const trailers = this.#trailers;
    if (trailers !== undefined) stream.once("wantTrailers", () => stream.sendTrailers(trailers));
    stream.respond(this.#head as string[], { waitForTrailers: trailers !== undefined });
    stream.end(last);
  }
}
