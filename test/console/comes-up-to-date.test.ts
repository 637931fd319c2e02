import { describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import type { Place } from "../support/dom-locator.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { v1 as anyCall } from "../support/v1.ts";
import { sendEvents } from "./console-page.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);

/** A tenant with an open event, and calls as others make them meanwhile. */
async function withDisk() {
  const tenant = await testTenant(sql);
  await sendEvents(server, tenant, [{ name: "disk full", source: "db-1", severity: Severity.ERROR }]);
  const others = anyCall(server.url, tenant.headers);
  const ok = async (method: string, path: string, body?: object) => {
    const answer = await others(method, path, body);
    expect(answer).toMatchObject({ status: 200 });
    return answer.body;
  };
  const { results } = await ok("POST", "/v1/events:search", { query: {} });
  return { tenant, ok, entity: results[0].entity as string, occurrence: results[0].occurrences[0].id as string };
}

type Ok = Awaited<ReturnType<typeof withDisk>>["ok"];

const silence = (ok: Ok, comment: string, more: object = {}) =>
  ok("POST", "/v1/notification/silences", {
    matchers: ["source=db-1"],
    comment,
    endsAt: String(Date.now() + 3_600_000),
    ...more,
  }) as Promise<{ id: string }>;
const end = (ok: Ok, { id }: { id: string }) => ok("POST", `/v1/notification/silences/${id}:expire`, {});

/** Moves the present until it is shown, or with a count of 0 until it is not; what the server does meanwhile may take a moment. */
async function shows(page: DomPage, text: string, count = 1, place: Place = page): Promise<void> {
  await eventually(async () => {
    page.moveOn();
    await page.settled();
    return Math.min(place.getByText(text).count(), 1);
  }).toBe(count);
}

async function opened({ tenant }: { tenant: TestTenant }, page: DomPage, hash: string): Promise<void> {
  await page.logIn(tenant, hash);
  await page.settled();
}

describe("what others do comes into sight as the present moves", () => {
  onPage("an occurrence's silences, and who was notified when one ends", async (page) => {
    const place = await withDisk();
    const { ok, occurrence } = place;
    const webhook = { url: "https://hooks.example.invalid/" };
    await ok("POST", "/v1/notification/destinations", { name: "d", type: { webhook } });
    await ok("POST", "/v1/notification/rules", {
      name: "page",
      enabled: true,
      matchers: ["source=db-1"],
      destinationNames: ["d"],
    });
    await opened(place, page, `#/occurrences/${occurrence}`);
    await page.getByText("Nothing silences it.").waitFor();
    const made = await silence(ok, "new disks", { createdBy: "The Chief" });
    await shows(page, "new disks");
    await page.getByText(/by .+ \(as “The Chief”\), until/).waitFor();
    await end(ok, made);
    await shows(page, "Nothing silences it.");
    await silence(ok, "again");
    await sendEvents(server, place.tenant, [{ name: "disk late", source: "db-1", severity: Severity.ERROR }]);
    const { results } = await ok("POST", "/v1/events:search", { query: {} });
    const late = results.find(({ name }: { name: string }) => name === "disk late").occurrences[0].id;
    await page.goto(`#/occurrences/${late}`);
    await shows(page, "Held by a silence");
    const { silences } = await ok("GET", "/v1/notification/silences?state=ACTIVE");
    await end(ok, silences[0]);
    await shows(page, "Held by a silence", 0);
  });

  onPage("the list of silences; an empty one says of which state there is none", async (page) => {
    const place = await withDisk();
    await opened(place, page, "#/silences");
    await page.getByText("No silence is active.").waitFor();
    const made = await silence(place.ok, "new disks");
    await shows(page, "new disks");
    await end(place.ok, made);
    await shows(page, "No silence is active.");
    await page.getByLabel("State").selectOption("pending");
    await page.getByText("No silence is scheduled.").waitFor();
    await page.goto(`#/silences?id=${made.id}`);
    await page.getByText("Over").first().waitFor();
    await page.goto("#/silences?id=00000000-0000-4000-8000-000000000000");
    await page.getByText("There is no such silence.").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  onPage("the list of windows, a window, and the entity that it holds", async (page) => {
    const place = await withDisk();
    const { ok, entity } = place;
    await opened(place, page, "#/windows?weeks=2");
    await page.getByText("There are no maintenance windows.").waitFor();
    const clause = { filter: { field: "dimensions.source", operation: "OP_EQUALS", value: "db-1" } };
    const schedule = { start: Date.now() + 86_400_000, duration: 3_600_000 };
    const specification = { name: "swap", schedule, maintenanceState: 300, query: { clause }, runMode: "MANUAL" };
    const { id } = await ok("POST", "/v1/modelcontext/maintwindows", { specification });
    await shows(page, "swap");
    await page.goto(`#/windows/${encodeURIComponent(id)}`);
    await page.getByRole("button", { name: "Start now" }).waitFor();
    await ok("POST", "/v1/modelcontext/maintwindows:start", { id });
    await shows(page, "End now");
    await page.goto(`#/entities/${encodeURIComponent(entity)}`);
    await shows(page, "swap");
    await ok("POST", "/v1/modelcontext/maintwindows:stop", { id });
    await shows(page, "None names it.");
  });

  onPage("an entity's events, a destination's state, and the delivery that is open", async (page) => {
    const place = await withDisk();
    const { ok, entity, tenant } = place;
    const webhook = { url: "https://hooks.example.invalid/" };
    await ok("POST", "/v1/notification/destinations", { name: "d", type: { webhook } });
    await opened(place, page, `#/entities/${entity}`);
    await page.getByText("Live", { exact: true }).waitFor();
    await sendEvents(server, tenant, [{ name: "disk slow", source: "db-1", severity: Severity.ERROR }]);
    await page.getByRole("link", { name: "disk slow" }).waitFor();
    await page.goto("#/rules/destinations/d");
    await page.getByText("What rules send to it goes out.").waitFor();
    await sql`update destinations set disabled_reason = 'HTTP 410' where tenant_id = ${tenant.id}`;
    await shows(page, "HTTP 410");
    await page.goto("#/rules/destinations");
    await page.getByText("Disabled").waitFor();
    await sql`update destinations set disabled_reason = '' where tenant_id = ${tenant.id}`;
    await shows(page, "Disabled", 0);
    await ok("POST", "/v1/notification/rules", {
      name: "page",
      enabled: true,
      matchers: ["alertname=held"],
      destinationNames: ["d"],
    });
    const made = await silence(ok, "new disks");
    await sendEvents(server, tenant, [{ name: "held", source: "db-1", severity: Severity.ERROR }]);
    await eventually(async () => (await ok("GET", "/v1/notification/deliveries")).totalCount).toBe("1");
    const { deliveries } = await ok("GET", "/v1/notification/deliveries");
    await page.goto(`#/deliveries?open=${deliveries[0].id}`);
    const dialog = page.getByRole("dialog", { name: "Delivery" });
    await dialog.getByText("Held by a silence").waitFor();
    await dialog.getByText("silence stopped").waitFor();
    await end(ok, made);
    await shows(page, "Held by a silence", 0, dialog);
    await dialog
      .getByText(/pending|failed/i)
      .first()
      .waitFor();
  });
});
