import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { WatchEventsRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import {
  PutEventRequestSchema,
  PutEventResponseSchema,
  PutEventsRequestSchema,
  PutEventsResponseSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

/** Calls a method with messages and prints what came of it: codes, words, and messages in hexadecimal. */
const program = `
import grpc, json, sys
target, ca, key, path, kind, timeout, *messages = sys.argv[1:]
channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(open(ca, "rb").read()))
call = getattr(channel, kind)(path, None, None)
sent = [bytes.fromhex(each) for each in messages]
more = dict(timeout=float(timeout), metadata=[("service-api-key", key)])
try:
    answer = call(iter(sent) if kind.startswith("stream") else sent[0], **more)
    answers = [answer] if kind.endswith("unary") else list(answer)
    print(json.dumps({"code": 0, "answers": [each.hex() for each in answers]}))
except grpc.RpcError as error:
    print(json.dumps({"code": error.code().value[0], "details": error.details()}))
`;

const absent = spawnSync("python3", ["-c", "import grpc"]).status !== 0;

describe.skipIf(absent)("Python's grpcio", () => {
  const receiver = "/belfry.receiver.v1.DataReceiverService";
  let server: TestServer;
  let key = "";
  beforeAll(async () => {
    server = await testServer({ BELFRY_PLAINTEXT: "0" });
    key = (await testTenant(server.database.sql)).headers["service-api-key"] ?? "";
  });

  async function call(path: string, kind: string, messages: Uint8Array[], { as = key, timeout = "20" } = {}) {
    const target = `localhost:${new URL(server.url).port}`;
    const sent = messages.map((each) => Buffer.from(each).toString("hex"));
    const args = ["-c", program, target, server.caFile ?? "", as, path, kind, timeout, ...sent];
    const { stdout } = await promisify(execFile)("python3", args);
    return JSON.parse(stdout) as { code: number; details?: string; answers?: string[] };
  }
  const event = { name: "of Python", dimensions: { host: "a" }, timestamp: BigInt(Date.now()) };
  const batch = toBinary(PutEventsRequestSchema, create(PutEventsRequestSchema, { events: [event] }));
  const one = toBinary(
    PutEventRequestSchema,
    create(PutEventRequestSchema, { event: { case: "canonical", value: event } }),
  );
  const watch = toBinary(WatchEventsRequestSchema, create(WatchEventsRequestSchema, { query: {} }));

  test("verifies the certificate, calls, and streams", async () => {
    const put = await call(`${receiver}/PutEvents`, "unary_unary", [batch]);
    expect(put).toMatchObject({ code: 0 });
    expect(fromBinary(PutEventsResponseSchema, Buffer.from(put.answers?.[0] ?? "", "hex")).succeeded).toBe(1);
    const streamed = await call(`${receiver}/PutEvent`, "stream_unary", [one, one]);
    expect(streamed).toMatchObject({ code: 0 });
    expect(fromBinary(PutEventResponseSchema, Buffer.from(streamed.answers?.[0] ?? "", "hex")).succeeded).toBe(2);
  });

  test("reads codes and words of errors", async () => {
    expect(await call(`${receiver}/PutEvents`, "unary_unary", [batch], { as: "" })).toMatchObject({ code: 16 });
    expect(await call(`${receiver}/PutNothing`, "unary_unary", [batch])).toEqual({
      code: 12,
      details: `there is nothing at ${receiver}/PutNothing`,
    });
    const watched = await call("/belfry.events.v1.EventQueryService/WatchEvents", "unary_stream", [watch], {
      timeout: "1",
    });
    expect(watched.code).toBe(4);
  });
});
