import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { headers } = await testTenant(server.database.sql);
const call = v1(server.url, headers);

const equals = { field: "name", value: { stringVal: "x" } };
const later = { start: Date.now() + 3_600_000, duration: 3_600_000 };
const query = { clause: { filter: { field: "source", operation: "OP_EQUALS", value: "web-1" } } };
const windows = "/v1/modelcontext/maintwindows";

interface Resource {
  what: string;
  create: [path: string, body: object];
  read: (made: never) => [method: string, path: string, body?: object];
  /** What of an answer is sent back: all of it by default. */
  part?: (answer: never) => object;
  write: (made: never) => [method: string, path: string];
}

const byName = (what: string, path: string, body: object, method = "PUT"): Resource => ({
  what,
  create: [path, { name: "a", ...body }],
  read: () => ["GET", `${path}/a`],
  write: () => [method, `${path}/a`],
});

const resources: Resource[] = [
  byName("a trigger", "/v1/notification/triggers", { type: { event: { query: { clause: { equals } } } } }),
  byName("a destination", "/v1/notification/destinations", { type: { webhook: { url: "https://a.example.com/" } } }),
  byName("a rule", "/v1/notification/rules", { tags: ["x"], repeat: true }),
  byName("a group", "/v1/user-mgmt/end-user-groups", { cloudRoles: ["user"] }),
  byName("a field of entities", "/v1/dictionary/entity_fields", { label: "A" }, "PATCH"),
  byName("a field of events", "/v1/dictionary/event_fields", { label: "A" }, "PATCH"),
  byName("a metric", "/v1/dictionary/metrics", { label: "A" }, "PATCH"),
  {
    what: "an account",
    create: [
      "/v1/user-mgmt/end-user-accounts",
      { user: { email: "ada@example.com", firstName: "Ada", lastName: "L", password: "Secret-12" } },
    ],
    read: ({ user: { id } }: { user: { id: string } }) => ["GET", `/v1/user-mgmt/end-user-accounts/${id}`],
    write: ({ user: { id } }: { user: { id: string } }) => ["PUT", `/v1/user-mgmt/end-user-accounts/${id}`],
  },
  {
    what: "a window",
    create: [windows, { specification: { name: "w", maintenanceState: 300, schedule: later, query } }],
    read: () => ["POST", `${windows}:list`, {}],
    part: ({ maintWindows: [window] }: { maintWindows: object[] }) => window as object,
    write: () => ["PUT", windows],
  },
];

test.each(resources)("$what as read can be sent back, wrappers and output-only members included", async (of) => {
  const made = await call("POST", ...of.create);
  expect(made.status, JSON.stringify(made.body)).toBe(200);
  const read = () => call(...of.read(made.body as never));
  const before = await read();
  expect(before.status).toBe(200);
  const sent = of.part === undefined ? before.body : of.part(before.body as never);
  const answer = await call(...of.write(made.body as never), sent);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  const times = { updateTime: undefined, updatedBy: undefined, updatedAt: undefined };
  const shown = (body: object) => JSON.stringify(body, (key, value) => (Object.hasOwn(times, key) ? undefined : value));
  expect(shown((await read()).body)).toBe(shown(before.body));
});
