import { expect } from "vitest";
import { domPage } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { onPage } = domPage(server);

onPage("the metadata of an occurrence link to web addresses alone, as a browser reads them", async (page) => {
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
  await page.logIn(tenant, `#/occurrences/${encodeURIComponent(results[0].occurrences[0].id)}`);
  const labels = page.getByRole("region", { name: "Labels" });
  for (const value of Object.values(metadataFields)) await labels.getByText(value).first().waitFor();
  const hrefs = (css: string) => {
    const links = page.locator(css);
    return Promise.all(Array.from({ length: links.count() }, (_, i) => links.nth(i).getAttribute("href")));
  };
  const both = ["https://runbooks.example/disk%20full", "http://prometheus.example:9090/graph?g0.expr=up"];
  // At the head, and beside the label.
  expect(await hrefs("a[target=_blank]")).toEqual([...both, ...both]);
  expect(await hrefs("dd a[target=_blank]")).toEqual(both);
});
