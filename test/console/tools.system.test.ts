import { describe, expect } from "vitest";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, sendEvents } from "./console-page.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { onPage } = testBrowser();

describe("the tools of the list", () => {
  onPage(
    "stand in one line at 1280 pixels",
    async (page) => {
      const tenant = await testTenant(server.database.sql);
      await sendEvents(server, tenant, [{ name: "slow", source: "a" }]);
      await openConsole(page, server, tenant);
      await page.getByText("1 occurrence", { exact: true }).waitFor();
      const tops = await Promise.all(
        [
          page.getByLabel("Time range"),
          page.getByRole("button", { name: "Conditions" }),
          page.locator("summary", { hasText: "⋯" }),
        ].map(async (tool) => (await tool.boundingBox())?.y),
      );
      const search = await page.getByLabel("Search events").boundingBox();
      for (const top of tops) expect(Math.abs((top ?? 0) - (search?.y ?? 0))).toBeLessThan(16);
    },
    { viewport: { width: 1280, height: 720 } },
  );

  onPage("that are seldom used hide again by Escape, and by a press beside them", async (page) => {
    const tenant = await testTenant(server.database.sql);
    await openConsole(page, server, tenant);
    const more = page.locator("summary", { hasText: "⋯" });
    const columns = page.getByRole("button", { name: "Columns" });
    await more.click();
    await columns.click();
    await page.getByRole("dialog", { name: "Columns" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    expect(await columns.isVisible()).toBe(true);
    await page.keyboard.press("Escape");
    await columns.waitFor({ state: "hidden" });
    expect(await page.evaluate("document.activeElement.textContent")).toBe("⋯");
    await more.click();
    await columns.waitFor();
    await page.getByRole("heading", { name: "Events", level: 1 }).click();
    await columns.waitFor({ state: "hidden" });
  });
});
