import type { OutgoingHttpHeaders } from "node:http";
import { breakOff, endResponse, type Response, writePieces, writeResponseHead } from "../wire/send-response.ts";

/** How the body holds the messages of a server stream. */
export interface Framing {
  readonly contentType: string;
  /** The bytes of one message. */
  message(message: unknown): string | Uint8Array;
  /** The last record of a stream that breaks with an error. */
  error(text: string): string | Uint8Array | undefined;
  /** What an orderly end adds. */
  end(): string | undefined;
}

/** One JSON record a line: `{"result": …}`, a last `{"error": …}` when it breaks. */
export function ndjson(write: (message: unknown) => string): Framing {
  return {
    contentType: "application/x-ndjson",
    message: (message) => `{"result":${write(message)}}\n`,
    error: (text) => `{"error":${text}}\n`,
    end: () => undefined,
  };
}

/** Server-sent events with the same records; an `end` event distinguishes the orderly end from a lost connection. */
export function eventStream(write: (message: unknown) => string): Framing {
  return {
    contentType: "text/event-stream",
    message: (message) => `data: {"result":${write(message)}}\n\n`,
    error: (text) => `event: error\ndata: {"error":${text}}\n\n`,
    end: () => "event: end\ndata: {}\n\n",
  };
}

/** The bytes of google.api.HttpBody messages, one after the other. */
export function rawStream(contentType: string, bytesOf: (message: unknown) => Uint8Array): Framing {
  return { contentType, message: bytesOf, error: () => undefined, end: () => undefined };
}

/** Whether a request prefers server-sent events. */
export function wantsEvents(accept: string | undefined): boolean {
  return accept !== undefined && /(?:^|[\s,])text\/event-stream(?:[\s,;]|$)/i.test(accept);
}

/**
 * Sends a stream whose first step is known; fails, with nothing sent, when that cannot be written. Later errors become the
 * last record; without such a record, or when the answer itself breaks, the stream is reset so that it is not taken for whole.
 */
export async function sendStream(
  response: Response,
  headers: OutgoingHttpHeaders,
  bodiless: boolean,
  framing: Framing,
  first: IteratorResult<unknown>,
  next: () => Promise<IteratorResult<unknown>>,
  errorText: (thrown: unknown) => string,
): Promise<void> {
  const record = first.done === true ? undefined : framing.message(first.value);
  writeResponseHead(response, 200, { ...headers, "content-type": framing.contentType });
  if (bodiless) return endResponse(response);
  // HTTP/1.1 would hold back the head until the first message.
  if ("flushHeaders" in response) response.flushHeaders();
  const bytesOf = (step: IteratorResult<unknown>) => (step.done === true ? undefined : framing.message(step.value));
  try {
    if (!(await writePieces(response, record, async () => bytesOf(await next())))) return;
  } catch (thrown) {
    if (response.destroyed) return;
    const last = framing.error(errorText(thrown));
    if (last === undefined) breakOff(response);
    else endResponse(response, last);
    return;
  }
  endResponse(response, framing.end());
}
