import type { Page } from "playwright-core";
import { beforeAll, expect } from "vitest";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, ordinaryDay } from "./console-page.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const tenant = await testTenant(server.database.sql);
const { onPage } = testBrowser();
beforeAll(() => ordinaryDay(server, tenant));

/** Where, under which heading, and a text that the answer brings. */
const screens = [
  ["#/entities", "Entities", "web-2"],
  ["#/deliveries", "Deliveries", "page on critical"],
  ["#/rules", "Rules", "page on critical"],
  ["#/rules/triggers", "Triggers", "critical"],
  ["#/rules/destinations", "Destinations", "on call"],
  ["#/settings/keys", "Keys", "USER manager"],
  ["#/settings/audit", "Audit log", "Create rule"],
  ["#/events", "Events", "disk full"],
] as const;
const rounds = 5;

/** Opens a screen, and answers how long after the last answer of the server its text came into sight. */
const open = (page: Page, [hash, heading, text]: (typeof screens)[number]) =>
  page.evaluate(`(async () => {
    performance.clearResourceTimings();
    const main = document.querySelector("main");
    location.hash = ${JSON.stringify(hash)};
    const seenMs = await new Promise((resolve) => {
      const look = () => {
        const there =
          main.querySelector("h1")?.textContent === ${JSON.stringify(heading)} && main.textContent.includes(${JSON.stringify(text)});
        if (there) resolve(performance.now());
        return there;
      };
      const changes = new MutationObserver(() => look() && changes.disconnect());
      setTimeout(() => look() || changes.observe(main, { childList: true, characterData: true, subtree: true }), 0);
    });
    const answers = performance.getEntriesByType("resource").map(({ responseEnd }) => responseEnd);
    return seenMs - Math.max(...answers.filter((endMs) => endMs <= seenMs));
  })()`) as Promise<number>;

onPage("each screen comes into sight after its answer; how soon is printed", async (page) => {
  await openConsole(page, server, tenant);
  await page.getByText("Live", { exact: true }).waitFor();
  // The code of all screens is fetched by then.
  await page.waitForTimeout(4000);
  const lateMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const screen of screens) {
      const ms = await open(page, screen);
      if (Number.isFinite(ms)) lateMs.push(ms);
    }
  }
  lateMs.sort((a, b) => a - b);
  expect(lateMs.length).toBeGreaterThan(rounds * 4);
  const [p50, last] = [lateMs[lateMs.length >> 1] ?? 0, lateMs.at(-1) ?? 0];
  console.log(
    `in sight after the answer, of ${lateMs.length} navigations: p50 ${p50.toFixed(0)} ms, last ${last.toFixed(0)} ms`,
  );
});
