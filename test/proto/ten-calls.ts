/**
 * A program of a user: its types are made of the OpenAPI document by openapi-typescript, its calls by openapi-fetch. It is
 * compiled against those types, so that a call which the document does not allow is found before it is sent.
 */
export const tenCalls = `
import createClient from "openapi-fetch";
import type { components, paths } from "./openapi.d.ts";

const [baseUrl = "", key = ""] = process.argv.slice(2);
const { GET, POST, PUT, DELETE } = createClient<paths>({ baseUrl, headers: { "service-api-key": key } });

/** The answer of a call that succeeded. */
function answered<T>(call: { data?: T; error?: unknown }): T {
  if (call.data === undefined) throw new Error(JSON.stringify(call.error));
  return call.data;
}

const host = { host: "client-1" };
const timestamp = Date.now();

const models = answered(
  await POST("/v1/data-receiver/models", {
    body: { models: [{ timestamp, dimensions: host, metadataFields: { name: "client-1", site: "Graz" } }] },
  }),
);
const stored: number = models.succeeded;

const points = answered(
  await POST("/v1/data-receiver/metrics", {
    body: { metrics: [{ metric: "load", timestamp, value: 0.5, dimensions: host }] },
  }),
);

const severity: components["schemas"]["Severity"] = "SEVERITY_ERROR";
const events = answered(
  await POST("/v1/data-receiver/events", {
    body: { events: [{ timestamp: String(timestamp), name: "down", dimensions: host, severity, status: "STATUS_OPEN" }] },
  }),
);

const entities = answered(
  await POST("/v1/modelcontext/entities:search", {
    body: { search_input: { query: { clause: { filter: { field: "name", operation: "OP_EQUALS", value: "client-1" } } } } },
  }),
);
const name = entities.entities.entities[0]?.name;

const found = answered(
  await POST("/v1/events:search", { body: { query: { clause: { and: { clauses: [
    { filter: { field: "name", operation: 1, value: "down" } },
    { in: { field: "severity", values: ["SEVERITY_ERROR"] } },
  ] } } } } }),
);
const event = found.results[0];
if (event === undefined) throw new Error("no event");

const one = answered(
  await GET("/v1/events/{id}", { params: { path: { id: event.id }, query: { fields: ["name", "lastSeen"] } } }),
);
const lastSeen: string | undefined = one.result.occurrences[0]?.lastSeen;

const type = { event: { query: { clause: { equals: { field: "name", value: { stringVal: "down" } } } } } };
const trigger = answered(await POST("/v1/notification/triggers", { body: { name: "Client", type } }));

const changed = answered(
  await PUT("/v1/notification/triggers/{name}", {
    params: { path: { name: "Client" } },
    body: { description: "Of a client" },
  }),
);

const list = answered(await GET("/v1/notification/triggers", { params: { query: { pageSize: 10 } } }));
const total: string = list.totalCount;

answered(await DELETE("/v1/notification/triggers/{name}", { params: { path: { name: "Client" } } }));

// What the document does not allow does not compile.
// @ts-expect-error the name is no string
void (() => POST("/v1/notification/triggers", { body: { name: 5, type } }));
// @ts-expect-error the type is missing
void (() => POST("/v1/notification/triggers", { body: { name: "Client" } }));

const { error, response } = await GET("/v1/notification/triggers/{name}", { params: { path: { name: "Client" } } });
console.log(JSON.stringify({
  stored, points: points.succeeded, events: events.succeeded, name, lastSeen: lastSeen === String(timestamp),
  created: trigger.trigger.name, description: changed.trigger.description, total, gone: [response.status, error?.code],
}));
`;
