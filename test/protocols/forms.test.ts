import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import { afterAll, describe, expect, test } from "vitest";
import {
  EventQueryService,
  GetEventRequestSchema,
  WatchEventsRequestSchema,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import {
  DataReceiverService,
  PutEventRequestSchema,
  PutEventsRequestSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import { invalidFields } from "../../src/errors.ts";
import { envelope, openHttp2, type RawAnswer, type RawRequest } from "../support/clients.ts";
import { served, testPort } from "../support/port.ts";

/** Does what the name of an event says. */
async function act(name: string, signal: AbortSignal) {
  if (name === "lent") throw new ConnectError("it is lent ✓", Code.FailedPrecondition);
  if (name === "broken") throw invalidFields([{ path: "events[0].name", rule: "is broken" }]);
  if (name === "unforeseen") throw new TypeError("password=hunter2");
  if (name === "long") await sleep(60_000, undefined, { signal });
}

const port = await testPort(
  [
    served(DataReceiverService, {
      async putEvents({ events }, { signal }) {
        const [name = ""] = events.map((event) => event.name);
        await act(name, signal);
        return { succeeded: events.length, message: name };
      },
      async putEvent(requests, { signal }) {
        for await (const { event } of requests) await act(event.value?.name ?? "", signal);
        return {};
      },
    }),
    served(EventQueryService, {
      getEvent: ({ id }) => ({ result: { id } }),
      async *watchEvents({ cursor }, { signal }) {
        await act(cursor, signal);
        yield { cursor };
        yield { cursor: "last" };
      },
    }),
  ],
  { settings: { receiverBytesMax: 64 * 1024, messageBytesMax: 64 * 1024, receiverItemsMax: 10, streamIdleMs: 300 } },
);
const client = openHttp2(port);
afterAll(() => client.close());
const { text: key } = await port.key();

/** A message in both codings. */
interface Message {
  json: Uint8Array;
  binary: Uint8Array;
}

function message<D extends DescMessage>(desc: D, init: MessageInitShape<D>): Message {
  const made = create(desc, init);
  return { json: Buffer.from(toJsonString(desc, made)), binary: toBinary(desc, made) };
}

/** A call as a client means it. */
interface Sent {
  messages: Message[];
  headers?: Record<string, string>;
  pack?: (bytes: Uint8Array) => Uint8Array;
  /** Only so much of its body is sent, and the rest of it never, or the request ends there. */
  part?: "and no more" | "and its end";
}

/** A request in a form, and what a client makes of its answer. */
interface Form {
  name: string;
  request(sent: Sent): RawRequest;
}

async function* without(body: Buffer, part: Sent["part"]) {
  yield part === undefined ? body : body.subarray(0, body.length - 3);
  if (part === "and no more") await new Promise(() => {});
}

function framed(name: string, type: string, path: string, { binary = true, text = false } = {}): Form {
  const encodingHeader = type.includes("connect") ? "connect-content-encoding" : "grpc-encoding";
  return {
    name,
    request({ messages, headers, pack, part }) {
      const all = messages.map((each) => (binary ? each.binary : each.json));
      const body = Buffer.concat(all.map((each) => (pack === undefined ? envelope(each) : envelope(pack(each), 1))));
      const packed: Record<string, string> = pack === undefined ? {} : { [encodingHeader]: "gzip" };
      return {
        path,
        headers: { "content-type": type, te: "trailers", ...packed, ...headers },
        body: without(text ? Buffer.from(body.toString("base64")) : body, part),
      };
    },
  };
}

function plain(name: string, path: string, type: string, binary: boolean): Form {
  return {
    name,
    request({ messages: [first], headers, pack, part }) {
      const bytes = Buffer.from((binary ? first?.binary : first?.json) ?? []);
      const packed: Record<string, string> = pack === undefined ? {} : { "content-encoding": "gzip" };
      const body = without(Buffer.from(pack?.(bytes) ?? bytes), part);
      return { path, headers: { "content-type": type, ...packed, ...headers }, body };
    },
  };
}

const inGrpc = (path: string): Form[] => [
  framed("gRPC", "application/grpc", path),
  framed("gRPC, JSON", "application/grpc+json", path, { binary: false }),
  framed("gRPC-Web", "application/grpc-web+proto", path),
  framed("gRPC-Web, JSON", "application/grpc-web+json", path, { binary: false }),
  framed("gRPC-Web, text", "application/grpc-web-text", path, { text: true }),
];
const inStreams = (path: string): Form[] => [
  ...inGrpc(path),
  framed("Connect", "application/connect+proto", path),
  framed("Connect, JSON", "application/connect+json", path, { binary: false }),
];

const rpc = "/belfry.receiver.v1.DataReceiverService/PutEvents";
const watch = "/belfry.events.v1.EventQueryService/WatchEvents";

/** A kind of RPC: its forms, and a call of one whose handler acts by a name. */
interface Kind {
  kind: string;
  forms: Form[];
  call(...names: string[]): Sent;
}

const unary: Kind = {
  kind: "a unary call",
  forms: [
    ...inGrpc(rpc),
    plain("Connect", rpc, "application/proto", true),
    plain("Connect, JSON", rpc, "application/json", false),
    plain("/v1", "/v1/data-receiver/events", "application/json", false),
  ],
  call: (...names) => ({ messages: [message(PutEventsRequestSchema, { events: names.map((name) => ({ name })) })] }),
};
const { forms } = unary;
const events = unary.call;

const kinds: Kind[] = [
  unary,
  {
    kind: "a client stream",
    forms: inStreams("/belfry.receiver.v1.DataReceiverService/PutEvent"),
    call: (...names) => ({
      messages: names.map((name) => message(PutEventRequestSchema, { event: { case: "canonical", value: { name } } })),
    }),
  },
  {
    kind: "a watch",
    forms: [...inStreams(watch), plain("/v1", "/v1/events:watch", "application/json", false)],
    call: (cursor = "") => ({ messages: [message(WatchEventsRequestSchema, { query: {}, cursor })] }),
  },
];

interface Read {
  code: number;
  text: string;
  details: unknown[];
}

const ofStatus = (text: string | undefined) =>
  text === undefined
    ? []
    : fromBinary(StatusSchema, Buffer.from(text, "base64")).details.flatMap(({ typeUrl, value }) =>
        violations(typeUrl, value),
      );

function violations(type: string, value: Uint8Array) {
  if (!type.endsWith("google.rpc.BadRequest")) return [];
  return fromBinary(BadRequestSchema, value).fieldViolations.map(({ field, description }) => ({ field, description }));
}

/** The last frame of a body. */
function lastFrame(bytes: Buffer): Buffer {
  let at = 0;
  while (at + 5 + bytes.readUInt32BE(at + 1) < bytes.length) at += 5 + bytes.readUInt32BE(at + 1);
  return bytes.subarray(at + 5);
}

const ofBase64 = (text: string) =>
  Buffer.concat((text.match(/[^=]+=*/g) ?? []).map((piece) => Buffer.from(piece, "base64")));

/** Reads code, text and violations of an answer, wherever its protocol puts them. */
function read({ status, headers, trailers, body }: RawAnswer): Read {
  const type = String(headers["content-type"]);
  let told = { ...headers, ...trailers } as Record<string, string | undefined>;
  if (type.startsWith("application/grpc-web")) {
    const lines = lastFrame(type.includes("text") ? ofBase64(body.toString()) : body)
      .toString()
      .split("\r\n");
    told = Object.fromEntries(lines.map((line) => line.split(": ") as [string, string]));
  }
  if (told["grpc-status"] !== undefined) {
    const text = decodeURIComponent(told["grpc-message"] ?? "");
    return { code: Number(told["grpc-status"]), text, details: ofStatus(told["grpc-status-details-bin"]) };
  }
  const error = type.startsWith("application/connect+")
    ? JSON.parse(lastFrame(body).toString()).error
    : status === 200
      ? undefined
      : JSON.parse(body.toString());
  if (error === undefined) return { code: 0, text: "", details: [] };
  const { code, message = "", details = [] } = error;
  if (typeof code === "string") {
    const all = details.flatMap((one: { type: string; value: string }) =>
      violations(one.type, Buffer.from(one.value, "base64")),
    );
    return { code: codeFromString(code) ?? 0, text: message, details: all };
  }
  const fields = details.flatMap(({ fieldViolations = [] }) => fieldViolations);
  return { code, text: message, details: fields.map(({ field, description }: never) => ({ field, description })) };
}

async function ask(form: Form, sent: Sent) {
  const { headers, ...request } = form.request(sent);
  return read(await client.send({ ...request, headers: { "service-api-key": key, ...headers } }));
}

const rubbish = { json: Buffer.from('{"nothing'), binary: Buffer.from([255, 255, 255]) };
const soon = { "grpc-timeout": "50m", "connect-timeout-ms": "50" };
const large = "x".repeat(70_000);

/** Of a call: its name, how it is sent, what every form reads of its answer; what the text says of the coding differs. */
const cases: [string, (call: Kind["call"]) => Sent, Partial<Read>, "any text"?][] = [
  ["that is good", (call) => call("one"), { code: 0 }],
  ["that is packed", (call) => ({ ...call("one"), pack: gzipSync }), { code: 0 }],
  ["without a key", (call) => ({ ...call("one"), headers: { "service-api-key": "" } }), { code: 16 }],
  ["with an unknown key", (call) => ({ ...call("one"), headers: { "service-api-key": "none" } }), { code: 16 }],
  ["that fails", (call) => call("lent"), { code: Code.FailedPrecondition, text: "it is lent ✓" }],
  [
    "that fails with details",
    (call) => call("broken"),
    { code: 3, details: [{ field: "events[0].name", description: "is broken" }] },
  ],
  ["whose deadline is none", (call) => ({ ...call("one"), headers: { "grpc-timeout": "soon" } }), { code: 3 }],
  ["whose deadline passes", (call) => ({ ...call("long"), headers: soon }), { code: 4 }],
  ["whose message is none", (call) => ({ ...call("one"), messages: [rubbish] }), { code: 3 }, "any text"],
  ["that is cut", (call) => ({ ...call("one"), part: "and its end" }), { code: 3 }, "any text"],
  ["that does not go on", (call) => ({ ...call("one"), part: "and no more" }), { code: 4 }],
  [
    "of a type that nobody knows",
    (call) => ({ ...call("one"), headers: { "content-type": "text/csv" } }),
    { code: 3 },
    "any text",
  ],
  ["that is too large", (call) => call(large), { code: 8 }],
  ["that unpacks to too much", (call) => ({ ...call(large), pack: gzipSync }), { code: 8 }],
];

describe.each(kinds)("$kind", ({ forms, call }) => {
  describe.each(cases)("%s is answered with the same code, text and details", (_name, sentOf, wanted, anyText) => {
    const same = forms.at(-1) as Form;
    let said: Promise<Read> | undefined;
    test.each(forms)("over $name", async (form) => {
      const answer = await ask(form, sentOf(call));
      expect(answer).toMatchObject(wanted);
      said ??= ask(same, sentOf(call));
      if (anyText === undefined) expect(answer).toEqual(await said);
    });
  });

  test("an unforeseen error says nothing of itself, over any protocol", async () => {
    for (const form of forms) {
      const answer = await ask(form, call("unforeseen"));
      expect(answer.code, form.name).toBe(Code.Internal);
      expect(answer.text, form.name).toMatch(/^internal error/);
    }
  });
});

test("too many items are refused with the same words over any protocol", async () => {
  for (const form of forms) {
    expect(await ask(form, events(...Array<string>(11).fill("a"))), form.name).toMatchObject({
      code: Code.ResourceExhausted,
      text: "events: a request holds at most 10 items; split it",
    });
  }
});

test("a message in base64 may come in pieces that are padded each", async () => {
  const body = envelope(events("one").messages[0]?.binary as Uint8Array);
  const text = [body.subarray(0, 4), body.subarray(4, 9), body.subarray(9)].map((piece) => piece.toString("base64"));
  const headers = { "service-api-key": key, "content-type": "application/grpc-web-text" };
  const answer = await client.send({ path: rpc, headers, body: [Buffer.from(text.join(""))] });
  expect(answer.headers["content-type"]).toBe("application/grpc-web-text+proto");
  expect(read(answer).code).toBe(0);
  for (const wrong of ["AAA*", "AA==".repeat(1001)]) {
    const broken = await client.send({ path: rpc, headers, body: [Buffer.from(wrong)] });
    expect(read(broken)).toMatchObject({
      code: Code.InvalidArgument,
      text: "the body is not base64, as its content type says",
    });
  }
});

test("an unknown method or service of gRPC and gRPC-Web is code 12 in its form", async () => {
  for (const path of ["/belfry.receiver.v1.DataReceiverService/PutNothing", "/none.Service/Get"]) {
    for (const type of ["application/grpc", "application/grpc-web", "application/grpc-web-text"]) {
      const answer = await client.send({ path, headers: { "content-type": type }, body: [envelope(Buffer.alloc(0))] });
      expect(answer.status).toBe(200);
      expect(read(answer), type).toEqual({
        code: Code.Unimplemented,
        text: `there is nothing at ${path}`,
        details: [],
      });
    }
  }
});

describe("a GET of Connect", () => {
  const path = "/belfry.events.v1.EventQueryService/GetEvent";
  const get = (query: string) =>
    client.send({ method: "GET", path: `${path}?${query}`, headers: { "service-api-key": key } });
  const json = JSON.stringify({ id: "ä" });
  const binary = Buffer.from(toBinary(GetEventRequestSchema, create(GetEventRequestSchema, { id: "ä" })));

  test.each([
    ["JSON", `encoding=json&message=${encodeURIComponent(json)}`],
    ["JSON in base64", `encoding=json&base64=1&message=${Buffer.from(json).toString("base64url")}`],
    ["packed JSON", `encoding=json&base64=1&compression=gzip&message=${gzipSync(json).toString("base64url")}`],
    ["binary", `connect=v1&encoding=proto&base64=1&message=${binary.toString("base64url")}`],
  ])("reads its message from the query: %s", async (name, query) => {
    const answer = await get(query);
    expect(answer.status).toBe(200);
    if (name !== "binary") expect(JSON.parse(answer.body.toString())).toEqual({ result: { id: "ä" } });
  });

  test("that names no coding, or another compression, is refused", async () => {
    expect(await get("message=%7B%7D")).toMatchObject({ status: 415 });
    expect(await get("encoding=json&compression=lzma&message=%7B%7D")).toMatchObject({ status: 501 });
  });
});
