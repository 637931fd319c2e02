import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import { metricDictionaryService } from "../../src/dictionary/service.ts";
import type { Reads } from "./reads.ts";

const own = 1000;

/** One metric entry, and the list of 1,000 of a tenant's own; the service adds the default layer to them. */
export const dictionaryReads: Reads = async (sql, tenantId) => {
  await sql`
    insert into dictionary_entries (tenant_id, kind, name, entry)
    select ${tenantId}::uuid, 'metric', 'app.metric.' || m, jsonb_build_object(
      'label', 'Metric ' || m, 'description', 'What the application measures under the number ' || m,
      'tags', '["app", "bench"]'::jsonb, 'units', 'By', 'minimum', '0', 'isRate', m % 2 = 0)
    from generate_series(1, ${own}::int) as m`;
  await sql`analyze dictionary_entries`;
  const name = "app.metric.471";
  return {
    services: [{ service: MetricDictionaryService, implementation: metricDictionaryService(sql, readConfig({})) }],
    cases: [
      {
        name: "one dictionary entry",
        method: MetricDictionaryService.method.getMetricEntry,
        request: { name },
        rows: 1,
        statement: () => sql`
          select name, entry from dictionary_entries
          where tenant_id = ${tenantId} and kind = 'metric' and name = ${name}`,
      },
      {
        name: "a list of 1,000 metric entries",
        method: MetricDictionaryService.method.listMetricEntries,
        request: {},
        rows: own,
        statement: () => sql`
          select name, entry from dictionary_entries
          where tenant_id = ${tenantId} and kind = 'metric' order by name`,
      },
    ],
  };
};
