import { create, createRegistry, type DescMethod, type Message, toBinary, toJsonString } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { EventSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { DataReceiverService, PutEventsRequestSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { allMethods, callName, readCalls, type World } from "../support/calls.ts";
import { envelope, openHttp2, type RawRequest, raw, transport } from "../support/clients.ts";
import { turnMsMax } from "../support/loop-turns.ts";
import { testTenant } from "../support/tenant.ts";
import { fileServer } from "./file-server.ts";
import { fullRequests } from "./full-fields.ts";

const { server, sql } = await fileServer({ BELFRY_MASTER_KEYS: `test:${Buffer.alloc(32, 7).toString("base64")}` });
await server.longestTurn();
const calls = await readCalls();
const atOnce = 2;
// A server closes a connection on which many streams are reset, as this client does after each answer.
const perConnection = 250;

async function newWorld(): Promise<World> {
  const tenant = await testTenant(sql);
  const way = transport(server, "grpc", tenant.headers);
  return {
    db: sql,
    tenant,
    mark: `mark${Math.random().toString(36).slice(2)}`,
    client: (service) => createClient(service, way),
  };
}

const registry = createRegistry();

/** The call in binary or in JSON; undefined where the message has no such form. */
function callOf(
  method: DescMethod,
  message: Message,
  headers: Record<string, string>,
  json: boolean,
): RawRequest | undefined {
  const streams = method.methodKind !== "unary";
  let bytes: Uint8Array;
  try {
    bytes = json ? Buffer.from(toJsonString(method.input, message, { registry })) : toBinary(method.input, message);
  } catch {
    return undefined;
  }
  const type = streams ? `application/grpc${json ? "+json" : "+proto"}` : `application/${json ? "json" : "proto"}`;
  // A watch ends with its deadline.
  const more: Record<string, string> = streams ? { "grpc-timeout": "50m", te: "trailers" } : {};
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    headers: { ...headers, ...more, "content-type": type },
    body: [streams ? envelope(bytes) : bytes],
  };
}

interface Sent {
  name: string;
  fromMs: number;
  toMs: number;
  status: number;
  said: string;
}

/** Resources that are made get a name each, so that every one is stored. */
function renamed(method: DescMethod, message: Message, number: number): void {
  if (!/^Create/.test(method.name)) return;
  for (const holder of [message, ...Object.values(message)] as Record<string, unknown>[]) {
    if (typeof holder === "object" && holder !== null && typeof holder.name === "string" && holder.name.length < 64) {
      holder.name = `${holder.name}${number}`;
    }
  }
}

/** Sends each request of an RPC, a few at a time, as another tenant than those before. */
async function sendAll(method: DescMethod): Promise<Sent[]> {
  const world = await newWorld();
  const init = await calls[callName(method)]?.request(world);
  const good = create(method.input, (Array.isArray(init) ? init[0] : init) as never) as Message;
  const sent: Sent[] = [];
  const all = fullRequests(method.input, good);
  let number = 0;
  async function sendSome() {
    let connection = openHttp2(server);
    let left = perConnection;
    for (const { name, request } of all) {
      number += 1;
      left -= 1;
      if (left === 0) {
        connection.close();
        connection = openHttp2(server);
        left = perConnection;
      }
      const json = number % 2 === 0;
      renamed(method, request, number);
      const call = callOf(method, request, world.tenant.headers, json);
      if (call === undefined) continue;
      const fromMs = Date.now();
      const { status, body } = await connection.send(call);
      const said = body.toString().slice(0, 200);
      sent.push({ name: `${name} in ${json ? "JSON" : "binary"}`, fromMs, toMs: Date.now(), status, said });
    }
    connection.close();
  }
  await Promise.all(Array.from({ length: atOnce }, sendSome));
  return sent;
}

/** Which turn of the loop since the last call took longer than it may, and what was sent by then. */
async function longTurns(sent: readonly Sent[]): Promise<string[]> {
  const { ms, endedMs } = await server.longestTurn();
  if (ms <= turnMsMax) return [];
  const during = sent.filter((each) => each.fromMs < endedMs && each.toMs > endedMs - ms);
  return [`${Math.round(ms)} ms by one of ${during.map(({ name }) => name).join(", ")}`];
}

// Every RPC there is, so that a new one is tried as well.
test.each(allMethods.map((method) => ({ rpc: callName(method), method })))(
  "no field of $rpc at its bound holds the loop for 250 ms, or is answered by a fault",
  async ({ method }) => {
    const sent = await sendAll(method);
    expect(await longTurns(sent)).toEqual([]);
    expect(sent.filter(({ said }) => /"internal"|internal error/.test(said))).toEqual([]);
  },
);

test.each([
  ["values", 8, { metadataFields: { a: Array<number>(131_071).fill(0) } }],
  ["dimensions", 800, { dimensions: Object.fromEntries(Array.from({ length: 1024 }, (_, i) => [`d${i}`, ""])) }],
])("a batch full of items with too many %s fails item by item, and does not hold the loop", async (_, count, item) => {
  const { tenant } = await newWorld();
  const request = create(PutEventsRequestSchema, { events: Array(count).fill(create(EventSchema, item)) });
  for (const json of [false, true]) {
    const call = callOf(DataReceiverService.method.putEvents, request, tenant.headers, json) as RawRequest;
    const { status, body } = await raw(server, "2", call);
    expect(status, body.toString().slice(0, 200)).toBe(200);
    expect(await longTurns([])).toEqual([]);
  }
});

test("the process has lived through all of it", () => {
  expect(server.pid).toBeDefined();
});
