import { create, toBinary } from "@bufbuild/protobuf";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import {
  DataReceiverService,
  type PutEventsRequest,
  PutEventsRequestSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { LoadRequest, Variation } from "../load/load.ts";
import { type Calls, callsOf } from "./calls.ts";
import type { Database } from "./database.ts";

const hourMs = 3_600_000;

function request(count: number, baseMs: number): PutEventsRequest {
  const events = Array.from({ length: count }, (_, index) => ({
    timestamp: BigInt(baseMs),
    name: "disk almost full",
    dimensions: { host: `web-${String(index).padStart(8, "0")}`, service: "checkout" },
    metadataFields: { mount: "/var", usedPercent: 97 },
    type: "disk",
    summary: "97 % of /var is used",
    severity: Severity.ERROR,
    status: Status.OPEN,
  }));
  return create(PutEventsRequestSchema, { events });
}

/**
 * PutEvents of so many events; no event is sent twice. `hostSets` is the number of requests until the same entities come
 * again, each time with a new instance of the event that they have.
 */
export function putEvents(count: number, hostSets: number, key: Record<string, string>): Calls {
  // Unlike any other number in the message, and long enough ago for hours of requests.
  const baseMs = Date.now() - 24 * hourMs;
  const message = request(count, baseMs);
  const method = DataReceiverService.method.putEvents;
  const calls = callsOf(method, message, { method: "POST", path: "/v1/data-receiver/events" }, key);
  const vary = (load: LoadRequest, times: Variation["times"]): LoadRequest => {
    const body = Buffer.from(load.body ?? []);
    const time = times === "digits" ? Buffer.from(String(baseMs)) : varint(message);
    const timesAt = placesOf(body, time);
    const hostsAt = placesOf(body, Buffer.from("web-")).map((at) => at + 4);
    if (timesAt.length !== count || hostsAt.length !== count) throw new Error("the body's numbers were not found");
    // The body as it stands is a request too; the first varied one is not the same.
    return { ...load, vary: { times, timesAt, hostsAt, baseMs: baseMs + 1, hostSets } };
  };
  return {
    rest: vary(calls.rest, "digits"),
    connectJson: vary(calls.connectJson, "digits"),
    connectBinary: vary(calls.connectBinary, "varint"),
    grpc: vary(calls.grpc, "varint"),
  };
}

/** The time of the first event as it stands in the message. */
function varint(message: PutEventsRequest): Buffer {
  const event = { events: [{ timestamp: message.events[0]?.timestamp ?? 0n }] };
  return Buffer.from(toBinary(PutEventsRequestSchema, create(PutEventsRequestSchema, event))).subarray(-6);
}

function placesOf(body: Buffer, part: Buffer): number[] {
  const places: number[] = [];
  for (let at = body.indexOf(part); at >= 0; at = body.indexOf(part, at + part.byteLength)) places.push(at);
  return places;
}

/** Compares the instances that are stored with those that were acknowledged. @throws when they are not the same. */
export async function checkStored({ sql }: Database, acknowledged: number): Promise<string> {
  const [row] = await sql<{ count: bigint }[]>`select count(*) from instances`;
  if (row?.count !== BigInt(acknowledged)) {
    throw new Error(`${acknowledged} events were acknowledged, ${row?.count} are stored`);
  }
  return `All ${acknowledged} acknowledged events are stored.`;
}
