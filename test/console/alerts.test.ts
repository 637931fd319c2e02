import { expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { type Sent, sendEvents } from "./console-page.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);

const critical = (name: string, source = "web-1"): Sent => ({ name, source, severity: Severity.CRITICAL });

/** Logs in where a critical occurrence is open, and lets the browser notify. */
async function opened(page: DomPage) {
  const tenant = await testTenant(sql);
  await sendEvents(server, tenant, [critical("known before")]);
  await page.logIn(tenant);
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByLabel("Notify while hidden").selectOption("critical");
  await eventually(() => page.notified().map(({ title }) => title)).toEqual(["Belfry"]);
  return { send: (...events: Sent[]) => sendEvents(server, tenant, events) };
}

/** Hides the tab; resolves once the page has read what it need not notify of. */
async function hide(page: DomPage): Promise<void> {
  await page.settled();
  const reading = page.hold("SearchEvents");
  page.see("hidden");
  (await reading).release();
  await page.settled();
}

/** The notifications that come next. */
async function shown(page: DomPage) {
  const come: ReturnType<DomPage["notified"]> = [];
  await eventually(() => come.push(...page.notified())).toBeGreaterThan(0);
  return come;
}

onPage("critical occurrences that come while the tab is hidden are notified of, many at once in one", async (page) => {
  const { send } = await opened(page);
  await hide(page);
  await send({ ...critical("an error"), severity: Severity.ERROR }, critical("disk full"));
  const [first, ...others] = await shown(page);
  expect(others).toEqual([]);
  expect(first).toMatchObject({ title: "Critical: disk full", body: "web-1" });
  await send(critical("disk full"), ...["a", "b", "c", "d", "e"].map((name) => critical(name, `host ${name}`)));
  const [many, ...more] = await shown(page);
  expect(more).toEqual([]);
  expect(many?.title).toBe("5 critical occurrences");
  expect(many?.body).toMatch(/^[a-e] · host [a-e]\n(?:.*\n){3}and 1 more$/);
  first?.click();
  await page.waitForHash(/^#\/occurrences\//);
  await page.getByRole("heading", { level: 1, name: "disk full" }).waitFor();
});

onPage("nothing is notified of that a person may see, in this tab or in another one", async (page) => {
  const { send } = await opened(page);
  const seen = async (name: string) => {
    await send(critical(name));
    await page.getByRole("row").filter({ hasText: name }).waitFor();
  };
  await seen("in sight");
  const other = Promise.withResolvers<void>();
  const left = navigator.locks.request("belfry.in-sight", { mode: "shared" }, () => other.promise);
  await hide(page);
  await seen("in the other tab");
  await page.settled();
  other.resolve();
  await left;
  await send(critical("unseen"));
  expect(await shown(page)).toMatchObject([{ title: "Critical: unseen" }]);
});

onPage("a browser that refuses is told of, and a hidden tab without notifications watches nothing", async (page) => {
  page.permit("denied");
  await page.logIn(await testTenant(sql));
  const live = page.getByText("Live", { exact: true });
  await live.waitFor();
  const choice = page.getByLabel("Notify while hidden");
  await choice.selectOption("critical");
  const refusal = page.getByText("The browser refuses to show them");
  await refusal.waitFor();
  page.see("hidden");
  await page.getByText("Paused").waitFor();
  page.see("visible");
  await live.waitFor();
  page.permit("granted");
  await choice.selectOption("off");
  await refusal.waitFor({ state: "detached" });
  page.see("hidden");
  await page.getByText("Paused").waitFor();
  expect(page.notified()).toEqual([]);
});
