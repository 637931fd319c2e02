import { describe, expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const call = v1(server.url, tenant.headers);

const trigger = (text: string) => ({
  name: "t",
  description: text,
  type: { event: { query: { clause: { contains: { field: "name", value: "disk" } } } } },
});
const destination = (description: string) => ({
  name: "d",
  description,
  type: { webhook: { url: "https://hooks.example.com/", headers: { b: "1", a: "2" } } },
});
const rule = (description: string) => ({ name: "r", description, triggerNames: ["t"], destinationNames: ["d"] });
const startMs = String(Date.now() + 86_400_000);
const window = (description: string) => ({
  name: "w",
  description,
  maintenanceState: 1,
  exitState: 0,
  query: { clause: { filter: { field: "name", operation: "OP_EQUALS", value: "web-1" } } },
  schedule: { start: startMs, duration: "3600000" },
});

interface Kind {
  kind: string;
  path: string;
  /** The resource's member in requests and answers. */
  member: string;
  of(description: string): object;
}
const kinds: Kind[] = [
  { kind: "trigger", path: "/v1/notification/triggers", member: "trigger", of: trigger },
  { kind: "destination", path: "/v1/notification/destinations", member: "destination", of: destination },
  { kind: "rule", path: "/v1/notification/rules", member: "rule", of: rule },
];

describe.each(kinds)("a $kind", ({ kind, path, member, of }) => {
  test("has an etag that its change may hold, and is changed only where nothing else has changed it since", async () => {
    const name = (of("") as { name: string }).name;
    const read = async () => (await call("GET", `${path}/${name}`)).body[member];
    const change = (description: string, etag?: string) =>
      call("PUT", `${path}/${name}`, { ...of(description), ...(etag !== undefined && { etag }) });
    const made = (await call("POST", path, of("first"))).body[member];
    expect(made.etag).toMatch(/^[\w-]{16}$/);
    expect((await read()).etag).toBe(made.etag);

    const second = await change("second", made.etag);
    expect(second).toMatchObject({ status: 200 });
    const { etag } = await read();
    expect(etag).not.toBe(made.etag);
    expect(second.body[member].etag).toBe(etag);

    const refused = await change("third", made.etag);
    expect(refused).toMatchObject({ status: 409, body: { code: 10 } });
    expect(refused.body.message).toBe(
      `the ${kind} "${name}" has been changed since it was read; read it again, then change it`,
    );
    expect(refused.body.details[1]).toMatchObject({ name, description: "second", etag });
    expect(await read()).toMatchObject({ description: "second", etag });

    // As before: without one whatever it is now is changed; the same again is the same state.
    expect((await change("fourth")).status).toBe(200);
    expect((await change("second", "")).status).toBe(200);
    const last = await read();
    // But secrets that are sent are sealed again, and answers never say whether they are the same ones.
    if (kind !== "destination") expect(last.etag).toBe(etag);
    const [listed] = Object.values(await call("GET", path).then(({ body }) => body)).find(Array.isArray) ?? [];
    expect(listed).toMatchObject({ name, etag: last.etag });
  });
});

test("another person's change of a secret alone is not overwritten", async () => {
  const path = "/v1/notification/destinations";
  const sent = (signingSecret: string, etag?: string) => ({
    name: "signed",
    type: { webhook: { url: "https://hooks.example.com/", signingSecret } },
    ...(etag !== undefined && { etag }),
  });
  const secret = (byte: string) => `whsec_${Buffer.from(byte.repeat(32)).toString("base64")}`;
  const { etag } = (await call("POST", path, sent(secret("a")))).body.destination;
  const changed = await call("PUT", `${path}/signed`, sent(secret("b"), etag));
  expect(changed.status).toBe(200);
  expect(changed.body.destination.etag).not.toBe(etag);
  expect(await call("PUT", `${path}/signed`, sent(secret("c"), etag))).toMatchObject({ status: 409 });
  // One that keeps the secret keeps the state.
  const kept = await call("PUT", `${path}/signed`, sent("********", changed.body.destination.etag));
  expect(kept.body.destination.etag).toBe(changed.body.destination.etag);
});

test("a maintenance window has one, too", async () => {
  const path = "/v1/modelcontext/maintwindows";
  const { id } = (await call("POST", path, { specification: window("first") })).body;
  const read = async () => (await call("POST", `${path}:list`, {})).body.maintWindows[0];
  const change = (description: string, etag?: string) =>
    call("PUT", path, { id, specification: { ...window(description), ...(etag !== undefined && { etag }) } });
  const { etag } = await read();
  expect((await change("second", etag)).status).toBe(200);
  const refused = await change("third", etag);
  expect(refused).toMatchObject({ status: 409, body: { code: 10 } });
  const now = await read();
  expect(refused.body.details[1]).toMatchObject({ id, description: "second", etag: now.etag });
  expect(now).toMatchObject({ description: "second" });
  expect((await change("fourth")).status).toBe(200);
});
