import type { DescService } from "@bufbuild/protobuf";
import { EntityFieldDictionaryService } from "#gen/belfry/dictionary/v1/entity_field_service_pb.ts";
import { EventFieldDictionaryService } from "#gen/belfry/dictionary/v1/event_field_service_pb.ts";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import type { Call, Calls, World } from "../support/calls.ts";

/** The five RPCs that each dictionary has, by the names that theirs differ in. */
function rows<S extends DescService>(service: S, one: string, several: string, member: string): Calls {
  async function made(world: World): Promise<string> {
    const client = world.client(service) as unknown as Record<string, (request: object) => Promise<unknown>>;
    const request = { [member]: { name: world.mark, label: world.mark } };
    await client[`create${one}`]?.(request);
    return world.mark;
  }
  const named: Call = { request: async (world) => ({ name: await made(world) }), elsewhere: "not found" };
  return {
    [`${service.name}/Create${one}`]: {
      request: ({ mark }) => ({ [member]: { name: mark } }),
      elsewhere: "his own",
    },
    [`${service.name}/Get${one}`]: named,
    [`${service.name}/List${several}`]: {
      request: async (world) => {
        await made(world);
        return {};
      },
      elsewhere: "nothing",
    },
    [`${service.name}/Update${one}`]: {
      request: async (world) => ({ [member]: { name: await made(world), label: "changed" } }),
      elsewhere: "not found",
    },
    [`${service.name}/Delete${one}`]: named,
  };
}

export const calls: Calls = {
  ...rows(EntityFieldDictionaryService, "EntityField", "EntityFields", "entityField"),
  ...rows(MetricDictionaryService, "MetricEntry", "MetricEntries", "metric"),
  ...rows(EventFieldDictionaryService, "EventField", "EventFields", "eventField"),
  "MetricDictionaryService/BatchGetMetricEntries": {
    request: async ({ client, mark }) => {
      await client(MetricDictionaryService).createMetricEntry({ metric: { name: mark } });
      return { names: [mark] };
    },
    elsewhere: "nothing",
  },
};
