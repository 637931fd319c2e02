import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { describe, expect } from "vitest";
import { EventSchema, Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import {
  DeliverySchema,
  DeliveryService,
  DeliveryStatus,
  ExplainNotificationResponse_Outcome as Outcome,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { BreakerState } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { SessionSchema, SessionService } from "#gen/belfry/tenants/v1/session_service_pb.ts";
import { domPage } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";

const server = await testServer();
const { sql } = server.database;

describe("the list of events", () => {
  const { onPage } = domPage(server);

  onPage("counts what arrives beyond the rows that are loaded", async (page) => {
    const tenant = await testTenant(sql);
    const named = (name: string, count: number, severity: Severity) =>
      Array.from({ length: count }, (_, at) => ({ name: `${name} ${at}`, source: "a", severity }));
    await sendEvents(server, tenant, named("bad", 130, Severity.ERROR));
    await page.logIn(tenant);
    await page.getByText("130 occurrences").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await sendEvents(server, tenant, named("mild", 50, Severity.WARNING));
    await page.getByText("180 occurrences").waitFor();
  });

  onPage("never says of what has happened that it is to come", async (page) => {
    const tenant = await testTenant(sql);
    await page.logIn(tenant);
    await page.getByText("Live", { exact: true }).waitFor();
    // The clock of the agent is ahead.
    await sendEvents(server, tenant, [{ name: "early", source: "a", timestamp: BigInt(Date.now() + 8000) }]);
    const row = page.getByRole("row").filter({ hasText: "early" });
    await row.getByText("now").first().waitFor();
    expect(row.allTextContents().join()).not.toMatch(/in \d+ ?s/);
  });

  onPage("says of a change that the server did not answer that nothing repeats it", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "stays", source: "a" }]);
    await page.logIn(tenant);
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    await page.getByRole("row").filter({ hasText: "stays" }).getByRole("gridcell").first().click();
    void page.fail("SetEventStatus");
    await page.getByRole("button", { name: "Acknowledge" }).click();
    await page.getByText(/this may not have been done. Try it again/).waitFor();
    expect(await page.getByText(/tries again by itself/).count()).toBe(0);
  });
});

const session = create(SessionSchema, { id: "s", tenant: "Example", client: "Operations", role: "manager" });
const pending = create(DeliverySchema, {
  id: "d1",
  rule: "page",
  destination: "pager",
  status: DeliveryStatus.PENDING,
  nextTryTime: timestampFromMs(Date.now() - 660_000),
  createTime: timestampFromMs(Date.now() - 900_000),
  occasion: "first",
  subject: "e:1",
  occurrenceId: "e:1",
});

/** Answers as a server that knows the session of the page. */
function loggedIn({ service }: ConnectRouter): void {
  service(SessionService, {
    createSession: () => ({ session, pageProof: "p" }),
    getSession(_request, { requestHeader }) {
      if (requestHeader.get("service-session-proof") === null)
        throw new ConnectError("there is no session", Code.Unauthenticated);
      return { session };
    },
  });
}

/** Answers as a server whose only destination is paused, and whose rule has decided once. */
function paused(router: ConnectRouter): void {
  const { service } = router;
  loggedIn(router);
  service(DeliveryService, {
    listDeliveries: () => ({ deliveries: [pending], totalCount: 1n }),
    getDelivery: () => ({ delivery: pending }),
    explainNotification: () => ({
      outcome: Outcome.CANCELLED,
      steps: [
        { step: "rule", result: "passed", reason: "the rule is enabled" },
        { step: "repeat", result: "stopped", reason: "it was decided then, and the rule does not repeat" },
        { step: "delivery", result: "FAILED", reason: "HTTP 410" },
      ],
    }),
  });
  service(DestinationService, {
    getDestination: () => ({ destination: { name: "pager", breakerState: BreakerState.OPEN } }),
  });
}

describe("a delivery", () => {
  const { onPage } = domPage(paused);

  onPage("that waits names the destination that is paused, and no attempt of the past as the next", async (page) => {
    await page.logIn({ headers: { "service-api-key": "bf_any" } }, "#/deliveries?open=d1");
    const dialog = page.getByRole("dialog", { name: "Delivery" });
    await dialog.getByText("Held back").waitFor();
    await dialog.getByRole("link", { name: "pager" }).waitFor();
    expect(await dialog.getByText(/Next attempt/).count()).toBe(0);
  });

  onPage("that failed is marked as wrong, and the rule that stopped before it is not", async (page) => {
    await page.logIn({ headers: { "service-api-key": "bf_any" } }, "#/deliveries?open=d1");
    const wrong = page.getByRole("dialog").getByRole("listitem").locator('[data-tone="critical"]');
    await wrong.getByText("delivery failed").waitFor();
    expect(wrong.allTextContents()).toEqual([expect.stringContaining("delivery failed")]);
  });
});

/** Answers as a server that has this many events, all of which come at once and can be acknowledged. */
const many = (count: number) => (router: ConnectRouter) => {
  loggedIn(router);
  const results = Array.from({ length: count }, (_, at) =>
    create(EventSchema, { id: `e${at}`, name: `event ${at}`, occurrences: [{ id: `e${at}:1`, eventId: `e${at}` }] }),
  );
  router.service(EventQueryService, {
    searchEvents: () => ({ results, pageInfo: { totalCount: BigInt(count) } }),
  });
  router.service(EventManagementService, {
    setEventStatus: ({ statuses }) => ({
      statusResponses: statuses.map(({ eventId, occurrenceId }) => ({ eventId, occurrenceId, success: true })),
    }),
  });
};

describe("counts of a thousand and more", () => {
  const { onPage } = domPage(many(1200));

  onPage("are written alike wherever they stand", async (page) => {
    await page.logIn({ headers: { "service-api-key": "bf_any" } });
    await page.getByText("1,200 occurrences").waitFor();
    await page.getByRole("checkbox", { name: "Select all rows that are loaded" }).check();
    await page.getByText("1,200 selected").waitFor();
    await page.getByRole("button", { name: "Annotate…" }).click();
    await page.getByRole("dialog", { name: "Annotate 1,200 occurrences" }).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Acknowledge" }).click();
    await page.getByText("1,200 acknowledged").waitFor();
  });
});
