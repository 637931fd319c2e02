import { expect } from "vitest";
import { domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { ordinaryDay } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { onPage } = domPage(server);

onPage("a list is sorted by a press on a column, and the address keeps the order", async (page) => {
  const tenant = await testTenant(server.database.sql);
  await ordinaryDay(server, tenant);
  await page.logIn(tenant, "#/rules");
  await page.getByText("2 in all").waitFor();
  const order = () =>
    page
      .getByRole("row")
      .allTextContents()
      .map((text) => /page on critical|quiet/.exec(text)?.[0])
      .filter((name) => name !== undefined);
  const head = page.getByRole("columnheader", { name: /^Name/ });
  await head.getByRole("button").click();
  await page.waitForHash(/sort=name$/);
  await eventually(order).toEqual(["page on critical", "quiet"]);
  await head.getByRole("button").click();
  await eventually(order).toEqual(["quiet", "page on critical"]);
  expect(await head.getAttribute("aria-sort")).toBe("descending");
  await page.reload();
  await page.getByText("2 in all").waitFor();
  expect(order()).toEqual(["quiet", "page on critical"]);
  await page.goBack();
  await eventually(order).toEqual(["page on critical", "quiet"]);
});

onPage("a list is sorted by any text or time once all of it is there; before that it is not", async (page) => {
  const tenant = await testTenant(server.database.sql);
  const send = (from: number, count: number) => {
    const models = Array.from({ length: count }, (_, at) => ({
      timestamp: Date.now() - (from + at) * 60_000,
      dimensions: { source: `host ${from + at}` },
      metadataFields: { name: `host ${from + at}`, source_type: "host" },
    }));
    return v1(server, tenant)("/v1/data-receiver/models", { models });
  };
  await send(1, 11);
  await page.logIn(tenant, "#/entities");
  await page.getByText("11 entities").waitFor();
  const head = (name: RegExp) => page.getByRole("columnheader", { name });
  const first = () => /host \d+/.exec(page.getByRole("row").allTextContents()[1] ?? "")?.[0];
  await head(/^Name/).getByRole("button").click();
  await eventually(first).toBe("host 1");
  // By its number, not by its first digit.
  await head(/^Name/).getByRole("button").click();
  await eventually(first).toBe("host 11");
  await head(/^Last data/)
    .getByRole("button")
    .click();
  await page.waitForHash(/sort=liveness$/);
  await eventually(first).toBe("host 11");
  await send(100, 600);
  await page.goto("#/rules");
  await page.goto("#/entities?sort=name");
  await page.getByText("611 entities").waitFor();
  expect(await head(/^Name/).getByRole("button").count()).toBe(0);
});
