import { gzipSync } from "node:zlib";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import { afterAll, describe, expect, test } from "vitest";
import { EventQueryService, GetEventRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService, PutEventsRequestSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import { invalidFields } from "../../src/errors.ts";
import { envelope, openHttp2, type RawAnswer, type RawRequest } from "../support/clients.ts";
import { served, testPort } from "../support/port.ts";

const port = await testPort(
  [
    served(DataReceiverService, {
      putEvents({ events }) {
        const [name = ""] = events.map((event) => event.name);
        if (name === "lent") throw new ConnectError("it is lent ✓", Code.FailedPrecondition);
        if (name === "broken") throw invalidFields([{ path: "events[0].name", rule: "is broken" }]);
        if (name === "unforeseen") throw new TypeError("password=hunter2");
        return { succeeded: events.length, message: name };
      },
    }),
    served(EventQueryService, { getEvent: ({ id }) => ({ result: { id } }) }),
  ],
  { settings: { receiverBytesMax: 64 * 1024, receiverItemsMax: 10 } },
);
const client = openHttp2(port);
afterAll(() => client.close());
const { text: key } = await port.key();

/** A call as a client means it. */
interface Sent {
  json: string;
  /** Protobuf of the same; absent: what is sent is JSON in each form. */
  binary?: Uint8Array;
  headers?: Record<string, string>;
  pack?: (bytes: Uint8Array) => Uint8Array;
}

const rpc = "/belfry.receiver.v1.DataReceiverService/PutEvents";

/** A request in a form, and what a client makes of its answer. */
interface Form {
  name: string;
  request(sent: Sent): RawRequest;
}

function framed(name: string, type: string, binary: boolean, text = false): Form {
  return {
    name,
    request({ json, binary: bytes, headers, pack }) {
      const message = binary && bytes !== undefined ? bytes : Buffer.from(json);
      const body = pack === undefined ? envelope(message) : envelope(pack(message), 1);
      const packed: Record<string, string> = pack === undefined ? {} : { "grpc-encoding": "gzip" };
      return {
        path: rpc,
        headers: { "content-type": type, te: "trailers", ...packed, ...headers },
        body: [text ? Buffer.from(body.toString("base64")) : body],
      };
    },
  };
}

function plain(name: string, path: string, type: string, binary: boolean): Form {
  return {
    name,
    request({ json, binary: bytes, headers, pack }) {
      const message = binary && bytes !== undefined ? bytes : Buffer.from(json);
      const packed: Record<string, string> = pack === undefined ? {} : { "content-encoding": "gzip" };
      return { path, headers: { "content-type": type, ...packed, ...headers }, body: [pack?.(message) ?? message] };
    },
  };
}

const forms: Form[] = [
  framed("gRPC", "application/grpc", true),
  framed("gRPC, JSON", "application/grpc+json", false),
  framed("gRPC-Web", "application/grpc-web+proto", true),
  framed("gRPC-Web, JSON", "application/grpc-web+json", false),
  framed("gRPC-Web, text", "application/grpc-web-text", true, true),
  plain("Connect", rpc, "application/proto", true),
  plain("Connect, JSON", rpc, "application/json", false),
  plain("/v1", "/v1/data-receiver/events", "application/json", false),
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

/** Reads code, text and violations of an answer, wherever its protocol puts them. */
function read({ status, headers, trailers, body }: RawAnswer): Read {
  const type = String(headers["content-type"]);
  let told = { ...headers, ...trailers } as Record<string, string | undefined>;
  if (type.startsWith("application/grpc-web")) {
    const bytes = type.includes("text") ? Buffer.from(body.toString(), "base64") : body;
    const at = bytes[0] === 0x80 ? 0 : 5 + bytes.readUInt32BE(1);
    const lines = bytes
      .subarray(at + 5)
      .toString()
      .split("\r\n");
    told = Object.fromEntries(lines.map((line) => line.split(": ") as [string, string]));
  }
  if (told["grpc-status"] !== undefined) {
    const text = decodeURIComponent(told["grpc-message"] ?? "");
    return { code: Number(told["grpc-status"]), text, details: ofStatus(told["grpc-status-details-bin"]) };
  }
  if (status === 200) return { code: 0, text: "", details: [] };
  const { code, message = "", details = [] } = JSON.parse(body.toString());
  if (typeof code === "string") {
    const all = details.flatMap((one: { type: string; value: string }) =>
      violations(one.type, Buffer.from(one.value, "base64")),
    );
    return { code: codeFromString(code) ?? 0, text: message, details: all };
  }
  const fields = details.flatMap(({ fieldViolations = [] }) => fieldViolations);
  return { code, text: message, details: fields.map(({ field, description }: never) => ({ field, description })) };
}

function events(...names: string[]): Sent {
  const message = create(PutEventsRequestSchema, { events: names.map((name) => ({ name })) });
  return {
    json: JSON.stringify({ events: names.map((name) => ({ name })) }),
    binary: toBinary(PutEventsRequestSchema, message),
  };
}

const short = { "grpc-timeout": "soon" };
const cases: [string, Sent, Partial<Read>][] = [
  ["a good call", events("one"), { code: 0 }],
  ["a packed call", { ...events("one"), pack: gzipSync }, { code: 0 }],
  ["no key", { ...events("one"), headers: { "service-api-key": "" } }, { code: Code.Unauthenticated }],
  ["an unknown key", { ...events("one"), headers: { "service-api-key": "none" } }, { code: Code.Unauthenticated }],
  ["an error", events("lent"), { code: Code.FailedPrecondition, text: "it is lent ✓" }],
  ["an error with details", events("broken"), { details: [{ field: "events[0].name", description: "is broken" }] }],
  ["a deadline that is none", { ...events("one"), headers: short }, { code: Code.InvalidArgument }],
  ["too many items", events(...Array<string>(11).fill("a")), { code: Code.ResourceExhausted }],
  ["too large a message", events("x".repeat(70_000)), { code: Code.ResourceExhausted }],
  ["what unpacks to too much", { ...events("x".repeat(70_000)), pack: gzipSync }, { code: Code.ResourceExhausted }],
];

describe.each(cases)("%s is answered with the same code, text and details", (_name, sent, wanted) => {
  test.each(forms)("over $name", async (form) => {
    const { headers, ...request } = form.request(sent);
    const ask = (to: Form) => {
      const { headers, ...request } = to.request(sent);
      return client.send({ ...request, headers: { "service-api-key": key, ...headers } });
    };
    const answer = read(await client.send({ ...request, headers: { "service-api-key": key, ...headers } }));
    expect(answer).toMatchObject(wanted);
    expect(answer).toEqual(read(await ask(forms.at(-1) as Form)));
  });
});

test("an unforeseen error says nothing of itself, over any protocol", async () => {
  for (const form of forms) {
    const { headers, ...request } = form.request(events("unforeseen"));
    const answer = read(await client.send({ ...request, headers: { "service-api-key": key, ...headers } }));
    expect(answer.code, form.name).toBe(Code.Internal);
    expect(answer.text, form.name).toMatch(/^internal error/);
  }
});

test("a message in base64 may come in pieces that are padded each", async () => {
  const body = envelope(events("one").binary as Uint8Array);
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
