import { beforeAll, describe, expect } from "vitest";
import { domPage } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const { onPage } = domPage(server);
beforeAll(() => sendEvents(server, tenant, [{ name: "disk full", source: "web-1" }]));

const where = (field: string) =>
  encodeURIComponent(JSON.stringify({ filter: { field, operation: "OP_EQUALS", value: "x" } }));

describe("a condition on a field that is one letter away from another one", () => {
  const doubt = (name: string) =>
    new RegExp(`^Note: it looks at "[^"]+", which only a dimension or metadata can be; did you mean "${name}"\\?$`);

  for (const [screen, slip, meant] of [
    ["events", "summry", "summary"],
    ["entities", "namee", "name"],
    ["metrics", "namee", "name"],
  ] as const)
    onPage(`is doubted in a line of ${screen}, until it is mended`, async (page) => {
      await page.logIn(tenant, `#/${screen}?where=${where(slip)}`);
      await page.getByText(doubt(meant)).waitFor();
      await page.goto(`#/${screen}?where=${where(meant)}`);
      await page.getByText(doubt(meant)).waitFor({ state: "detached" });
      expect(await page.getByRole("alert").count()).toBe(0);
    });
});
