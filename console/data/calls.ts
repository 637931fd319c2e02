import type { DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { signal } from "@preact/signals";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";
import { proofHeader, sessionProof } from "./session-proof.ts";

/** Whether the last call found no server. The calls of the page, and a question every few seconds, find it again. */
export const serverAway = signal(false);

/** When the server answered last. What is shown while it is away is not younger. */
export const answeredAtMs = signal(0);

/** How many calls are under way; a watch counts until it begins. */
export const callsUnderWay = signal(0);

/** Raised by each refused session; the frame then asks for the key. */
export const refusals = signal(0);

export function refused(): void {
  refusals.value = refusals.peek() + 1;
}

// It peeks: calls begin in effects, which must not depend on what changes here.
const observe: Interceptor = (next) => async (request) => {
  callsUnderWay.value = callsUnderWay.peek() + 1;
  try {
    const answer = await next(request);
    serverAway.value = false;
    answeredAtMs.value = Date.now();
    return answer;
  } catch (error) {
    const { code } = ConnectError.from(error);
    if (code === Code.Unauthenticated) refused();
    if (code !== Code.Canceled) setAway(isAway(error));
    throw error;
  } finally {
    callsUnderWay.value = callsUnderWay.peek() - 1;
  }
};

const prove: Interceptor = (next) => (request) => {
  const proof = sessionProof();
  if (proof !== null) request.header.set(proofHeader, proof);
  return next(request);
};

/** Passes each call on its way to the server, whatever carries it. */
export const interceptors: readonly Interceptor[] = [observe, prove];

/** Carries calls to the server that the page came from. */
export const overHttp = (): Transport =>
  createConnectTransport({ baseUrl: location.origin, useBinaryFormat: true, interceptors: [...interceptors] });

let carrier: Transport | undefined;

/** Has all calls carried by this transport from now on. */
export function carryCalls(transport: Transport): void {
  carrier = transport;
}

function carrying(): Transport {
  if (carrier === undefined) throw new Error("the console has not started: nothing carries calls");
  return carrier;
}

const transport: Transport = {
  unary: (...call) => carrying().unary(...call),
  stream: (...call) => carrying().stream(...call),
};

/** A client of a service of the API, with the session of this browser. */
export function clientOf<S extends DescService>(service: S): Client<S> {
  return createClient(service, transport);
}

/** Whether no server answered: the network failed, or what stands before the server said so. */
export function isAway(error: unknown): boolean {
  const { code, cause } = ConnectError.from(error);
  return code === Code.Unavailable || cause instanceof TypeError;
}

let probe: ReturnType<typeof setTimeout> | undefined;

function setAway(away: boolean): void {
  serverAway.value = away;
  if (!away || probe !== undefined) return;
  probe = setTimeout(async () => {
    probe = undefined;
    const up = await fetch("/readyz").then(
      ({ ok }) => ok,
      () => false,
    );
    setAway(!up);
  }, 2000);
}

/** What a failed call says to a person. */
export interface Failure {
  readonly message: string;
  /** The fields it names, by their paths, each with what is wrong. */
  readonly fields: readonly { field: string; description: string }[];
  /** It says no more than that the server is away, as the frame does meanwhile. */
  readonly away?: boolean;
  /** The call itself is wrong: an answer to the one before is no answer to it. */
  readonly invalid?: boolean;
}

/** What a failed question says: it is asked again by itself when the server is back. */
export function failureOfReading(error: unknown): Failure {
  const message = "The server does not answer. The page tries again by itself.";
  if (isAway(error)) return { message, fields: [], away: true };
  return failureOf(error);
}

/** Describes a read that failed and is not repeated by itself. */
export function failureOfOneRead(error: unknown): Failure {
  const message = "The server did not answer. Try again once it is back.";
  if (isAway(error)) return { message, fields: [], away: true };
  return failureOf(error);
}

/** What a failed change says: nothing repeats it. */
export function failureOf(error: unknown): Failure {
  const failure = ConnectError.from(error);
  if (isAway(error)) {
    const message = "The server did not answer, so this may not have been done. Try again once it is back.";
    return { message, fields: [] };
  }
  if (failure.code === Code.PermissionDenied) {
    return { message: "Your key does not allow this. Ask somebody who manages keys for one that does.", fields: [] };
  }
  const fields = failure.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
  return {
    message: asSentence(failure.rawMessage),
    fields: fields.map(({ field, description }) => ({ field, description })),
    ...(failure.code === Code.InvalidArgument && { invalid: true }),
  };
}

/** Capitalises a server message that stands alone; paths with dots, underscores or capitals are unchanged. */
const asSentence = (text: string) => text.replace(/^\p{Ll}(?=\p{Ll}*\s)/u, (first) => first.toUpperCase());

export const isCancelled = (error: unknown) => ConnectError.from(error).code === Code.Canceled;
