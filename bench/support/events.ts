import { create, type DescMessage, type DescMethod, type MessageShape } from "@bufbuild/protobuf";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import {
  DataReceiverService,
  PutEventsRequestSchema,
  PutModelsRequestSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { LoadRequest, Variation } from "../load/load.ts";
import { type Calls, callsOf } from "./calls.ts";
import type { Database } from "./database.ts";

const hourMs = 3_600_000;

const dimensionsOf = (index: number) => ({ host: `web-${String(index).padStart(8, "0")}`, service: "checkout" });

/** How a message that holds `count` items, each of a host of its own at `baseMs`, becomes another one for each request. */
function varied<S extends DescMessage>(
  method: DescMethod & { input: S },
  message: MessageShape<S>,
  path: string,
  { count, baseMs, hostSets, key }: { count: number; baseMs: number; hostSets: number; key: Record<string, string> },
): Calls {
  const calls = callsOf(method, message, { method: "POST", path }, key);
  const vary = (load: LoadRequest, times: Variation["times"]): LoadRequest => {
    const body = Buffer.from(load.body ?? []);
    const timesAt = placesOf(body, times === "digits" ? Buffer.from(String(baseMs)) : varint(baseMs));
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

/**
 * PutEvents of this many events; no event is sent twice. `hostSets` is the number of requests until the same entities come
 * again, each time with a new instance of the event that they have.
 */
export function putEvents(count: number, hostSets: number, key: Record<string, string>): Calls {
  // Unlike any other number in the message, and long enough ago for hours of requests.
  const baseMs = Date.now() - 24 * hourMs;
  const events = Array.from({ length: count }, (_, index) => ({
    timestamp: BigInt(baseMs),
    name: "disk almost full",
    dimensions: dimensionsOf(index),
    metadataFields: { mount: "/var", usedPercent: 97 },
    type: "disk",
    summary: "97 % of /var is used",
    severity: Severity.ERROR,
    status: Status.OPEN,
  }));
  const message = create(PutEventsRequestSchema, { events });
  const given = { count, baseMs, hostSets, key };
  return varied(DataReceiverService.method.putEvents, message, "/v1/data-receiver/events", given);
}

/** PutModels of this many models of the same entities, which always say the same, at another time. */
export function putModels(count: number, hostSets: number, key: Record<string, string>): Calls {
  const baseMs = Date.now() - 2 * hourMs;
  const models = Array.from({ length: count }, (_, index) => ({
    timestamp: BigInt(baseMs),
    dimensions: dimensionsOf(index),
    metadataFields: { type: "host", os: "linux", release: "6.12", rack: "r17", owner: "checkout team" },
  }));
  const message = create(PutModelsRequestSchema, { models });
  const given = { count, baseMs, hostSets, key };
  return varied(DataReceiverService.method.putModels, message, "/v1/data-receiver/models", given);
}

/** A number as it is in a message. */
function varint(number: number): Buffer {
  const bytes: number[] = [];
  let rest = number;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
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
