import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { CountEventsRequestSchema, SearchEventsRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { readMatchers } from "../../src/clause/label-matcher.ts";
import type { Db } from "../../src/db/connect.ts";
import { paced } from "../../src/event-loop.ts";
import { countEvents } from "../../src/events/count.ts";
import { openAlerts } from "../../src/events/open-alerts.ts";
import { searchEvents } from "../../src/events/search.ts";

/** A question about an estate (test/support/event-estate.ts) with as many results whatever its size; returns how many. */
export interface SelectiveQuestion {
  name: string;
  ask(db: Db, tenantId: string): Promise<number>;
}

const never = new AbortController().signal;
const equals = (field: string, value: unknown) => ({ filter: { field, operation: "OP_EQUALS", value } });
const host = equals("dimensions.source", "host-7");
const pageInput = { limit: 20 };

const search = (name: string, query: object): SelectiveQuestion => ({
  name,
  async ask(db, tenantId) {
    const request = fromJson(SearchEventsRequestSchema, { query: { pageInput, ...query } } as JsonObject);
    return (await searchEvents(db, tenantId, request, never)).results.length;
  },
});

export const selectiveQuestions: readonly SelectiveQuestion[] = [
  search("of one host", { clause: host }),
  search("of one host, by severity", { clause: host, severities: ["SEVERITY_ERROR", "SEVERITY_WARNING"] }),
  {
    name: "count of one host",
    async ask(db, tenantId) {
      const request = fromJson(CountEventsRequestSchema, {
        query: { clause: host },
        fields: [{ field: "severity" }],
      } as JsonObject);
      return (await countEvents(db, tenantId, request, never)).results.severity?.values.length ?? 0;
    },
  },
  search("by a bare dimension", { clause: equals("source", "host-7") }),
  search("by metadata", { clause: equals("metadataFields.ticket", "T-7") }),
  search("by an entity's name", { clause: equals("entityName", "Machine 7") }),
  search("by name", { clause: equals("name", "event 7") }),
  search("the newest 20", {}),
  search("the newest 20 of a zone", { clause: equals("dimensions.zone", "z1") }),
  {
    name: "alerts by one label",
    async ask(db, tenantId) {
      const matchers = readMatchers(["source=host-8"], "filter");
      let count = 0;
      for await (const page of openAlerts(db, tenantId, { matchers, path: "filter", pace: paced() }))
        count += page.length;
      return count;
    },
  },
];
