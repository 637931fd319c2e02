import { create, type MessageInitShape } from "@bufbuild/protobuf";
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
  type DestinationHealthSchema,
  ExplainNotificationResponse_Outcome as Outcome,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { BreakerState } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { SessionSchema, SessionService } from "#gen/belfry/tenants/v1/session_service_pb.ts";
import { domPage } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

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
    await page.getByText(/this may not have been done. Try again/).waitFor();
    expect(await page.getByText(/tries again by itself/).count()).toBe(0);
  });
});

describe("a reading that the server did not answer", () => {
  const { onPage } = domPage(server);
  const changing = /may not have been done/;
  const reading = "The server did not answer. Try again once it is back.";

  onPage("says of the next page of a list that nothing repeats it, and leaves a change out of it", async (page) => {
    const tenant = await testTenant(sql);
    const endsAt = Date.now() + 3_600_000;
    for (let at = 0; at < 51; at += 1)
      await v1(server, tenant)("/v1/notification/silences", { matchers: [`a=${at}`], comment: `s${at}`, endsAt });
    await page.logIn(tenant, "#/silences");
    await page.getByText("51 silences").waitFor();
    // The list itself may be read again meanwhile.
    void page.fail("ListSilences", (asked) => (asked as { pageToken: string }).pageToken !== "");
    await page.getByRole("button", { name: "More" }).click();
    // Another call finds the server: until then the frame alone says that it is away.
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Find by name" }).waitFor();
    await page.keyboard.type("x");
    await page.getByRole("alert").getByText(reading).waitFor();
    expect(await page.getByText(changing).count()).toBe(0);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("article", { name: "s0", exact: true }).waitFor();
  });

  onPage("says it of an export and of what is looked for, too", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "stays", source: "a" }]);
    await page.logIn(tenant);
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    void page.fail("SearchEvents");
    await page.getByRole("button", { name: "Export CSV" }).click();
    await page.getByText(reading).waitFor();
    void page.fail("ListTriggers");
    await page.keyboard.press("Control+k");
    const finder = page.getByRole("dialog", { name: "Find anything" });
    await finder.getByRole("combobox", { name: "Find by name" }).waitFor();
    await page.keyboard.type("stays");
    await finder.getByText(reading).waitFor();
    expect(await page.getByText(changing).count()).toBe(0);
  });
});

describe("an error of the server", () => {
  const { onPage } = domPage(server);

  onPage("that stands alone begins with a capital letter", async (page) => {
    const tenant = await testTenant(sql);
    await page.logIn(tenant, "#/silences/new?occurrence=xyz");
    const alert = page.getByRole("alert");
    await alert.waitFor();
    expect(alert.allTextContents().join()).toMatch(/^No occurrence found/);
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

/** Answers as a server whose only destination is in trouble, and whose rule has decided once. */
const inTrouble = (state: MessageInitShape<typeof DestinationHealthSchema>) => (router: ConnectRouter) => {
  const { service } = router;
  loggedIn(router);
  service(DeliveryService, {
    getNotificationHealth: () => ({
      destinations: [
        { name: "pager", waitingCount: 41n, waitingSince: timestampFromMs(Date.now() - 660_000), ...state },
      ],
      destinationCount: 1n,
      pausedCount: 1n,
      waitingCount: 41n,
    }),
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
};

const paused = { breakerState: BreakerState.OPEN, pausedUntil: timestampFromMs(Date.now() + 3_660_000) };

for (const [trouble, state, said] of [
  ["paused", paused, /since \S+ \S+ 11m ago: the destination pager is paused until \S+ \S+ in 1h; 41 waiting\./],
  [
    "being retried",
    { breakerState: BreakerState.HALF_OPEN },
    /pager is being retried; 41 waiting\. .*one notification is being tried/,
  ],
  ["disabled", { disabledReason: "HTTP 410" }, /pager is disabled: HTTP 410; 41 waiting\. Waiting notifications fail/],
] as const)
  describe(`a destination that is ${trouble}`, () => {
    const { onPage } = domPage(inTrouble(state));
    const key = { headers: { "service-api-key": "bf_any" } };

    onPage("holds a delivery back, which says so, since when, why, until when, and how many wait", async (page) => {
      await page.logIn(key, "#/deliveries?open=d1");
      const dialog = page.getByRole("dialog", { name: "Delivery" });
      await dialog.getByText("Held back").waitFor();
      await dialog.getByRole("link", { name: "pager" }).waitFor();
      expect(dialog.allTextContents().join().replaceAll(/\s+/g, " ")).toMatch(said);
      expect(await dialog.getByText(/Next attempt|Waiting its turn/).count()).toBe(0);
    });

    onPage("is named with its reason or its next attempt over the list of events", async (page) => {
      await page.logIn(key);
      const strip = page.getByRole("region", { name: "Health of notifying" });
      await strip.getByText(new RegExp(trouble)).waitFor();
    });
  });

describe("a delivery", () => {
  const { onPage } = domPage(inTrouble(paused));

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
