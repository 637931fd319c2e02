import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { onPage } = testBrowser();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Texts that have too little contrast for WCAG's AA, each once by its colours. */
async function faint(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return (await page.evaluate(`axe.run({ runOnly: ["color-contrast"] }).then(({ violations }) => [...new Map(
    violations.flatMap(({ nodes }) => nodes).map(({ target, any: [check] }) => {
      const { fgColor, bgColor, contrastRatio } = check.data;
      return [fgColor + bgColor, target.join(" ") + ": " + fgColor + " on " + bgColor + ", " + contrastRatio];
    })).values()])`)) as string[];
}

for (const colorScheme of ["light", "dark"] as const)
  onPage(
    `what pages say can be read, ${colorScheme}`,
    async (page) => {
      const found: Record<string, string[]> = {};
      for (const path of ["/", "/certificate", "/docs/licences", "/missing", "/docs"]) {
        await page.goto(`${server.url}${path}`);
        if (path === "/docs") await page.waitForSelector(".opblock");
        found[path] = await faint(page);
      }
      await page.locator('.opblock[id$="EventQueryService_SearchEvents"] .opblock-summary-control').click();
      await page.locator(".execute").waitFor();
      found["a call"] = await faint(page);
      await page.locator(".btn.authorize").click();
      await page.locator(".dialog-ux input").last().waitFor();
      found["the dialog"] = await faint(page);
      expect(found).toEqual(Object.fromEntries(Object.keys(found).map((place) => [place, []])));
    },
    { colorScheme },
  );
