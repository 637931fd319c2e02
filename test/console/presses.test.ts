import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type Interceptor } from "@connectrpc/connect";
import { describe, expect } from "vitest";
import { EventQueryService, type SearchEventsRequest } from "#gen/belfry/events/v1/query_service_pb.ts";
import {
  DeliverySchema,
  DeliveryService,
  DeliveryStatus,
  ExplainNotificationResponse_Outcome as Outcome,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { SessionSchema, SessionService } from "#gen/belfry/tenants/v1/session_service_pb.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;

/** Opens a tenant with one event, at its occurrence or at this address. */
async function opened(page: DomPage, hash?: string) {
  const tenant = await testTenant(sql);
  await sendEvents(server, tenant, [{ name: "disk full", source: "web-1" }]);
  const { results } = await v1(server, tenant)("/v1/events:search", { query: {} });
  const { eventId, occurrenceId } = { eventId: results[0].id, occurrenceId: results[0].occurrences[0].id };
  await page.logIn(tenant, hash ?? `#/occurrences/${occurrenceId}`);
  return { tenant, eventId, occurrenceId };
}

const button = (page: DomPage, name: string) => page.getByRole("button", { name, exact: true });
const focused = async (page: DomPage) => (await page.element()).ownerDocument.activeElement?.textContent;

/** Counts the calls of a method, as many as these at most. */
function counted(page: DomPage, method: string, callsMax = 10): { calls: number } {
  const counter = { calls: 0 };
  const count: Interceptor = (next) => (request) => {
    counter.calls += 1;
    return next(request);
  };
  for (let call = 0; call < callsMax; call += 1) page.passBy(method, count);
  return counter;
}

describe("a button that becomes its opposite", () => {
  const { onPage } = domPage(server);

  onPage("takes a double press and one that is held as a single one", async (page) => {
    await opened(page);
    const element = await button(page, "Acknowledge").element();
    const { MouseEvent, KeyboardEvent } = element.ownerDocument.defaultView as never as Record<
      "MouseEvent" | "KeyboardEvent",
      new (
        type: string,
        init: object,
      ) => never
    >;
    const held = page.hold("SetEventStatus");
    await button(page, "Acknowledge").click();
    const { release } = await held;
    const counter = counted(page, "SetEventStatus");
    await button(page, "Acknowledge").click();
    release();
    const now = await button(page, "Unacknowledge").element();
    now.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, detail: 2 }));
    const repeated = new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, repeat: true });
    now.dispatchEvent(repeated);
    expect((repeated as Event).defaultPrevented).toBe(true);
    await page.settled();
    expect(counter.calls).toBe(0);
    await button(page, "Unacknowledge").click();
    await button(page, "Acknowledge").waitFor();
  });
});

describe("the focus", () => {
  const { onPage } = domPage(server);

  onPage("goes to the first action of an occurrence when the button of another one goes", async (page) => {
    await opened(page);
    await button(page, "Suppress").click();
    await button(page, "Suppress").waitFor({ state: "detached" });
    await eventually(() => focused(page)).toBe("Acknowledge");
  });

  onPage("is not taken from a person who pressed elsewhere since", async (page) => {
    const { tenant, eventId, occurrenceId } = await opened(page);
    await page.getByText("Live", { exact: true }).waitFor();
    const suppress = await button(page, "Suppress").element();
    const { Event } = suppress.ownerDocument.defaultView as never as {
      Event: new (type: string, init: object) => never;
    };
    suppress.focus();
    (await page.locator("h1").element()).dispatchEvent(new Event("pointerdown", { bubbles: true }));
    suppress.blur();
    const statuses = [{ eventId, occurrenceId, statusWrapper: { status: "STATUS_SUPPRESSED" } }];
    await v1(server, tenant)("/v1/event-management/status", { statuses });
    await button(page, "Suppress").waitFor({ state: "detached" });
    await page.settled();
    expect((await page.element()).ownerDocument.activeElement?.tagName).toBe("BODY");
  });
});

describe("an action on a group", () => {
  const { onPage } = domPage(server);

  onPage("that is confirmed while another one runs says so, and is done once that has ended", async (page) => {
    await opened(page, "#/events?group=alertname");
    const held = page.hold("SetMatchingStatus");
    await button(page, "Acknowledge all 1 of disk full").click();
    const { release } = await held;
    await button(page, "Close all 1 of disk full…").click();
    const dialog = page.getByRole("dialog", { name: "Close all 1 of disk full?" });
    await dialog.getByRole("button", { name: "Close", exact: true }).click();
    await dialog
      .getByRole("alert")
      .getByText(/^Another action on these is still running/)
      .waitFor();
    release();
    await page.getByText("1 acknowledged").waitFor();
    await dialog.getByRole("button", { name: "Close", exact: true }).click();
    await page.getByText("1 closed").waitFor();
  });
});

/** Tells an export's searches from those of the list beside it: they ask for 500 events. */
const isOfExport = (message: object) => (message as SearchEventsRequest).query?.pageInput?.limit === 500;

describe("an export", () => {
  const { onPage } = domPage(server);

  onPage("shows its progress, the cancelling button and a failure beside the menu that it began in", async (page) => {
    await opened(page, "#/events");
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    const held = page.hold("SearchEvents", isOfExport);
    await button(page, "Export CSV").click();
    const { signal } = await held;
    await page.getByRole("status").filter({ hasText: "0 of 0 exported" }).waitFor();
    expect(page.locator("details").getByRole("button", { name: "Cancel export" }).count()).toBe(0);
    await button(page, "Cancel export").click();
    await eventually(() => signal.aborted).toBe(true);
    await button(page, "Cancel export").waitFor({ state: "detached" });
    void page.fail("SearchEvents", isOfExport);
    await button(page, "Export JSON").click();
    await page
      .getByRole("status", { name: "Done" })
      .getByText(/^Export failed\. The server did not answer\./)
      .waitFor();
  });
});

const session = create(SessionSchema, { id: "s", tenant: "Example", client: "Operations", role: "manager" });
const waiting = Array.from({ length: 5 }, (_, at) =>
  create(DeliverySchema, {
    id: `d${at}`,
    rule: `rule ${at}`,
    destination: `pager ${at}`,
    status: DeliveryStatus.PENDING,
    nextTryTime: timestampFromMs(Date.now() + 60_000),
    occurrenceId: "e:1",
  }),
);

/** Answers as a server with an occurrence of which five deliveries wait. */
function withWaiting({ service }: ConnectRouter): void {
  service(SessionService, {
    createSession: () => ({ session, pageProof: "p" }),
    getSession(_request, { requestHeader }) {
      if (requestHeader.get("service-session-proof") === null)
        throw new ConnectError("there is no session", Code.Unauthenticated);
      return { session };
    },
  });
  service(EventQueryService, {
    getEvent: () => ({ result: { id: "e", name: "disk full", occurrences: [{ id: "e:1" }] } }),
  });
  service(DeliveryService, {
    getNotificationHealth: () => ({}),
    explainOccurrence: () => ({
      totalCount: 5n,
      rules: waiting.map((delivery) => ({ rule: delivery.rule, outcome: Outcome.WAITING, deliveries: [delivery] })),
    }),
  });
}

describe("deliveries that wait", () => {
  const { onPage } = domPage(withWaiting);

  onPage("ask together, once, how notifying is", async (page) => {
    const held = page.hold("GetNotificationHealth");
    const counter = counted(page, "GetNotificationHealth");
    await page.logIn({ headers: { "service-api-key": "bf_any" } }, "#/occurrences/e%3A1");
    const { release } = await held;
    await eventually(() => page.getByText(/^Next attempt/).count()).toBe(5);
    expect(counter.calls).toBe(0);
    release();
  });
});
