import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { consumed } from "../../support/consumed.ts";
import { httpReceiver } from "../../support/receivers.ts";
import { type TestServer, testServer } from "../../support/server.ts";
import { testTenant } from "../../support/tenant.ts";
import { v1 } from "../../support/v1.ts";

type Json = Record<string, unknown>;

/** A tenant with a trigger over every event, and a receiver that keeps what it is sent; on the worker's server unless another is given. */
export async function silencePlace(given?: TestServer) {
  const server = given ?? (await testServer());
  const receiver = await httpReceiver();
  const tenant = await testTenant(server.database.sql);
  const call = v1(server.url, tenant.headers);
  const ok = async (verb: string, path: string, body?: object) => {
    const answer = await call(verb, path, body);
    expect(answer).toMatchObject({ status: 200 });
    return answer.body;
  };
  const made = (path: string, body: object) => ok("POST", `/v1/notification/${path}`, body);
  const clause = { greaterAndEquals: { field: "severity", value: { numberVal: 0 } } };
  await made("triggers", { name: "all", type: { event: { query: { clause } } } });

  const inMs = (ms: number) => String(Date.now() + ms);

  return {
    server,
    tenant,
    receiver,
    call,
    ok,
    made,
    inMs,
    /** What arrived at a path, as occasion and severity. */
    arrived: (path = "/d") =>
      receiver.received
        .filter((each) => each.path === path)
        .map(({ body }) => {
          const { occasion, event, clear } = JSON.parse(body) as { occasion?: string; event: Json; clear?: boolean };
          return { occasion, severity: event.severity, clear, name: event.name };
        }),
    async rule(name: string, more: Json = {}, destination = "d") {
      const there = await call("GET", `/v1/notification/destinations/${destination}`);
      if (there.status === 404)
        await made("destinations", { name: destination, type: { webhook: { url: `${receiver.url}/${destination}` } } });
      await made("rules", { name, enabled: true, triggerNames: ["all"], destinationNames: [destination], ...more });
    },
    /** Reports an event; resolves when rules have looked at it. */
    async report(name: string, more: Json = {}) {
      await ok("POST", "/v1/data-receiver/events", {
        events: [
          {
            name,
            timestamp: String(Date.now()),
            dimensions: { source: "web" },
            severity: "SEVERITY_ERROR",
            status: "STATUS_OPEN",
            ...more,
          },
        ],
      });
      await consumed(server.database.sql, tenant.id);
    },
    silence: (more: Json = {}) =>
      made("silences", { matchers: ["source=web"], endsAt: inMs(3_600_000), comment: "c", ...more }) as Promise<
        Json & { id: string }
      >,
    async deliveries(query = "") {
      const { deliveries } = await ok("GET", `/v1/notification/deliveries${query}`);
      return deliveries as Json[];
    },
    /** Waits until the deliveries stand so, in any order; returns them, the newest first. */
    async until(...statuses: string[]) {
      for (;;) {
        const { deliveries } = await ok("GET", "/v1/notification/deliveries");
        const now = (deliveries as Json[]).map(({ status, occasion }) => `${occasion} ${status}`);
        if (JSON.stringify(now.sort()) === JSON.stringify(statuses.sort())) return deliveries as Json[];
        await sleep(20);
      }
    },
  };
}
