import { createClient } from "@connectrpc/connect";
import type { Locator, Page } from "playwright-core";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transport } from "../support/clients.ts";
import type { Place } from "../support/dom-locator.ts";
import type { TestServer } from "../support/server.ts";
import type { TestTenant } from "../support/tenant.ts";
import { v1 } from "./json-call.ts";

/** Opens the console at `hash` and logs in with the tenant's key, as a person does. */
export async function openConsole(page: Page, server: TestServer, tenant: TestTenant, hash = ""): Promise<void> {
  await page.goto(`${server.url}/console/${hash}`);
  await page.getByLabel("API key").fill(tenant.headers["service-api-key"] ?? "");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("link", { name: "Belfry" }).waitFor();
}

/** Opens the filters of events, which stay open in a browser whichever test opened them. */
export async function openFilters(page: Place): Promise<void> {
  const filters = page.getByRole("button", { name: /^Filters/ });
  if ((await filters.getAttribute("aria-expanded")) !== "true") await filters.click();
}

/** A function of browsers. */
declare const getComputedStyle: (element: unknown) => Readonly<Record<string, string>>;

/** Reads a property of an element's style, by its name in scripts. */
export const styleOf = (element: Locator, property: string): Promise<string | undefined> =>
  element.evaluate((each, name) => getComputedStyle(each)[name], property);

/** Tells the page that it is hidden, or in sight: a Chromium without a screen never hides one by itself. */
export const see = (page: Page, state: "hidden" | "visible") =>
  page.evaluate(`
  Object.defineProperty(document, "visibilityState", { configurable: true, value: "${state}" });
  document.dispatchEvent(new Event("visibilitychange"));
`);

/** What an event of a test says; the rest is the same for all. */
export interface Sent {
  name: string;
  source: string;
  severity?: Severity;
  status?: Status;
  summary?: string;
  metadataFields?: Record<string, string>;
  timestamp?: bigint;
  dedupKey?: string;
}

/** Sends events, open ones unless they say otherwise, as an agent does. */
export async function sendEvents(server: TestServer, tenant: TestTenant, events: readonly Sent[]): Promise<void> {
  const receiver = createClient(DataReceiverService, transport(server.target, "connect", tenant.headers));
  const whole = events.map(({ source, severity = Severity.ERROR, timestamp = BigInt(Date.now()), ...rest }) => ({
    status: Status.OPEN,
    severity,
    timestamp,
    dimensions: { source },
    ...rest,
  }));
  for (let from = 0; from < whole.length; from += 1000) {
    const { failed, message } = await receiver.putEvents({ events: whole.slice(from, from + 1000) });
    if (failed > 0) throw new Error(message);
  }
}

const day = [
  ["disk full", Severity.CRITICAL, "97 % of /var is used", "web-1"],
  ["link down", Severity.CRITICAL, "eth0 has no carrier", "edge-ams-01"],
  ["replication lag", Severity.ERROR, "standby is 340 s late", "db-2"],
  ["high load", Severity.ERROR, "load 14.2 over 8 cores for 10 minutes", "web-2"],
  ["certificate expires", Severity.WARNING, "expires in 6 days", "edge-ams-01"],
  ["queue grows", Severity.WARNING, "12,400 messages wait", "queue-1"],
  ["backup finished", Severity.INFO, "31 GB in 12 minutes", "db-1"],
  ["probe slow", Severity.DEBUG, "p99 of 840 ms", "web-1"],
] as const;

/** A small system on an ordinary day: events of all severities, entities, metrics, a rule that could not deliver. */
export async function ordinaryDay(server: TestServer, tenant: TestTenant): Promise<void> {
  const call = v1(server, tenant);
  const now = Date.now();
  await call("/v1/notification/triggers", {
    name: "critical",
    type: {
      event: {
        query: { clause: { greaterAndEquals: { field: "severity", value: { numberVal: Severity.CRITICAL } } } },
      },
    },
  });
  await call("/v1/notification/destinations", {
    name: "on call",
    type: { webhook: { url: "https://hooks.example.invalid/pages" } },
  });
  const rule = { triggerNames: ["critical"], destinationNames: ["on call"], message: "{{event.name}}" };
  await call("/v1/notification/rules", { name: "page on critical", enabled: true, ...rule });
  await call("/v1/notification/rules", { name: "quiet", enabled: false, ...rule });
  await call("/v1/user-mgmt/end-user-groups", { name: "On call", cloudRoles: ["user"] });
  const ada = { email: "ada@example.com", password: "Correct-horse-7", firstName: "Ada", groups: ["On call"] };
  await call("/v1/user-mgmt/end-user-accounts", { user: ada });
  const entityInput = { clause: { filter: { field: "entity.name", operation: "OP_STARTS_WITH", value: "web" } } };
  const updater = { name: "web is ours", entity_input: entityInput, properties: { team: "web" }, enabled: true };
  await call("/v1/modelcontext/custompropertyupdaters:create", { updaters: [updater] });
  const models = ["web-1", "web-2", "db-1", "db-2", "queue-1", "edge-ams-01"].map((source, at) => ({
    timestamp: now,
    dimensions: { source },
    metadataFields: { name: source, source_type: "host", rack: `r${at % 3}` },
  }));
  await call("/v1/data-receiver/models", { models });
  const forms = [
    ["system.cpu.utilization", 0.45, 0.3],
    ["system.memory.usage", 6e9, 2e9],
    ["latency.p99", 0.3, 0.2],
  ] as const;
  const metrics = forms.flatMap(([metric, base, swing]) =>
    Array.from({ length: 180 }, (_, at) => ({
      metric,
      timestamp: now - at * 60_000,
      dimensions: { source: "web-1" },
      value: base + swing * Math.sin(at / 15) + (swing * ((at * 7919) % 13)) / 60,
    })),
  );
  await call("/v1/data-receiver/metrics", { metrics });
  for (const ago of [3_300_000, 1_500_000, 60_000]) {
    await sendEvents(
      server,
      tenant,
      day.map(([name, severity, summary, source], at) => ({
        name,
        severity,
        summary,
        source,
        timestamp: BigInt(now - ago - at * 97_000),
        metadataFields: { team: ["storage", "network"][at % 2] ?? "" },
      })),
    );
  }
}
