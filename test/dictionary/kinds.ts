import type { DescService } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { EntityFieldDictionaryService } from "#gen/belfry/dictionary/v1/entity_field_service_pb.ts";
import { EventFieldDictionaryService } from "#gen/belfry/dictionary/v1/event_field_service_pb.ts";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { type Target, transport } from "../support/clients.ts";

/** One of the three dictionaries, as tests that hold for all of them call it. */
export interface Dictionary {
  title: string;
  path: string;
  /** The member of lists over /v1. */
  list: string;
  /** The member of requests and answers over gRPC. */
  member: string;
  service: DescService;
  one: string;
  several: string;
  /** A name of the default layer. */
  shipped: string;
  /** The layer of a tenant's own entries. */
  layer(tenant: { name: string }): string;
  /** HTTP statuses of code 5. */
  missing: { GET: number; PATCH: number; DELETE: number };
}

export const dictionaries: readonly Dictionary[] = [
  {
    title: "entity fields",
    path: "/v1/dictionary/entity_fields",
    list: "entityFields",
    member: "entityField",
    service: EntityFieldDictionaryService,
    one: "EntityField",
    several: "EntityFields",
    shipped: "host.name",
    layer: () => "TENANT",
    missing: { GET: 404, PATCH: 404, DELETE: 400 },
  },
  {
    title: "metrics",
    path: "/v1/dictionary/metrics",
    list: "metrics",
    member: "metric",
    service: MetricDictionaryService,
    one: "MetricEntry",
    several: "MetricEntries",
    shipped: "system.cpu.utilization",
    layer: ({ name }) => name,
    missing: { GET: 400, PATCH: 404, DELETE: 404 },
  },
  {
    title: "event fields",
    path: "/v1/dictionary/event_fields",
    list: "eventFields",
    member: "eventField",
    service: EventFieldDictionaryService,
    one: "EventField",
    several: "EventFields",
    shipped: "severity",
    layer: () => "TENANT",
    missing: { GET: 404, PATCH: 404, DELETE: 404 },
  },
];

type Call = (request: object) => Promise<Record<string, never>>;

/** The RPCs of a dictionary over gRPC, without the part of their names that differs. */
export function grpcOf({ service, one, several }: Dictionary, target: Target, headers: Record<string, string>) {
  const client = createClient(service, transport(target, "grpc", headers)) as unknown as Record<string, Call>;
  return {
    create: client[`create${one}`] as Call,
    get: client[`get${one}`] as Call,
    list: client[`list${several}`] as Call,
    update: client[`update${one}`] as Call,
    delete: client[`delete${one}`] as Call,
  };
}
