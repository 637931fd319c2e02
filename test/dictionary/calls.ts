import type { DescService } from "@bufbuild/protobuf";
import { EntityFieldDictionaryService } from "#gen/belfry/dictionary/v1/entity_field_service_pb.ts";
import { EventFieldDictionaryService } from "#gen/belfry/dictionary/v1/event_field_service_pb.ts";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { after, type Call, type Calls, hisOwn, notFound, nothing, type World } from "../support/calls.ts";

/** The five RPCs that each dictionary has, by the names that theirs differ in. */
function rows<S extends DescService>(service: S, one: string, several: string, member: string): Calls {
  async function made(world: World): Promise<string> {
    const client = world.client(service) as unknown as Record<string, (request: object) => Promise<unknown>>;
    const request = { [member]: { name: world.mark, label: world.mark } };
    await client[`create${one}`]?.(request);
    return world.mark;
  }
  const named: Call = notFound(after(made, (name) => ({ name })));
  return {
    [`${service.name}/Create${one}`]: hisOwn(({ mark }) => ({ [member]: { name: mark } })),
    [`${service.name}/Get${one}`]: named,
    [`${service.name}/List${several}`]: nothing(after(made)),
    [`${service.name}/Update${one}`]: notFound(async (world) => ({
      [member]: { name: await made(world), label: "changed" },
    })),
    [`${service.name}/Delete${one}`]: named,
  };
}

export const calls: Calls = {
  ...rows(EntityFieldDictionaryService, "EntityField", "EntityFields", "entityField"),
  ...rows(MetricDictionaryService, "MetricEntry", "MetricEntries", "metric"),
  ...rows(EventFieldDictionaryService, "EventField", "EventFields", "eventField"),
  "MetricDictionaryService/BatchGetMetricEntries": nothing(async ({ client, mark }) => {
    await client(MetricDictionaryService).createMetricEntry({ metric: { name: mark } });
    return { names: [mark] };
  }),
};
