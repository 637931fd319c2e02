import type { Locator } from "playwright-core";
import { describe, expect } from "vitest";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { onPage } = testBrowser();

describe("the metadata of an occurrence", () => {
  onPage("link to web addresses alone, as a browser reads them", async (page) => {
    const tenant = await testTenant(server.database.sql);
    const metadataFields = {
      generatorURL: "http://prometheus.example:9090/graph?g0.expr=up",
      "annotation.runbook_url": "https://runbooks.example/disk full",
      noHost: "http://:9090/graph",
      zone: "http://[fe80::1%25eth0]:9090/x",
      script: "javascript:alert(1)",
      plain: "no address",
    };
    await sendEvents(server, tenant, [{ name: "disk full", source: "a", metadataFields }]);
    const { results } = await v1(server, tenant)("/v1/events:search", { query: {} });
    await openConsole(page, server, tenant, `#/occurrences/${encodeURIComponent(results[0].occurrences[0].id)}`);
    await page.getByText("no address").first().waitFor();
    const labels = page.getByRole("region", { name: "Labels" });
    for (const value of Object.values(metadataFields)) await labels.getByText(value).first().waitFor();
    const hrefs = (links: Locator) => links.evaluateAll((all) => all.map((each) => each.getAttribute("href")));
    const [runbook, graph] = [
      "https://runbooks.example/disk%20full",
      "http://prometheus.example:9090/graph?g0.expr=up",
    ];
    expect(await hrefs(page.locator("a[target=_blank]:not(dd *)"))).toEqual([runbook, graph]);
    expect(await hrefs(page.locator("dd a[target=_blank]"))).toEqual([runbook, graph]);
  });
});
