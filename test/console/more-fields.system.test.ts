import { beforeAll, describe, expect } from "vitest";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, ordinaryDay } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const tenant = await testTenant(server.database.sql);
const { onPage } = testBrowser();

beforeAll(() => ordinaryDay(server, tenant));

describe("the seldom used fields of a rule", () => {
  onPage(
    "are folded, and are opened by what is wrong with them, said by the browser or by the server",
    async (page) => {
      await openConsole(page, server, tenant, "#/rules/rules?new=1");
      const delay = page.getByLabel("Wait before the first notification", { exact: true });
      const more = page.getByText("More", { exact: true });
      await page.getByLabel("Message", { exact: true }).waitFor();
      expect(await delay.isVisible()).toBe(false);
      await page.getByLabel("Name", { exact: true }).fill("late");
      for (const wrong of ["soon", "2000"]) {
        if (!(await delay.isVisible())) await more.click();
        await delay.fill(wrong);
        await more.click();
        await delay.waitFor({ state: "hidden" });
        await page.getByRole("button", { name: "Create the rule" }).click();
        await delay.waitFor();
        const focused = "document.activeElement.labels?.[0]?.textContent";
        await expect.poll(() => page.evaluate(focused)).toBe("Wait before the first notification");
        if (wrong === "soon") continue;
        await page.getByRole("alert").filter({ hasText: "86400" }).waitFor();
      }
    },
  );

  onPage("are open where the rule says something in them", async (page) => {
    const rule = {
      triggerNames: ["critical"],
      destinationNames: ["on call"],
      message: "{{event.name}}",
      enabled: false,
    };
    await v1(server, tenant)("/v1/notification/rules", { ...rule, name: "described", description: "for the night" });
    await openConsole(page, server, tenant, "#/rules/rules/described");
    await page.getByLabel("Description").waitFor();
    expect(await page.getByLabel("Description").inputValue()).toBe("for the night");
  });
});
