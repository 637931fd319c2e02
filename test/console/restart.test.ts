import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { testBrowser } from "../support/browser.ts";
import { testDatabase } from "../support/database.ts";
import { masterKeys } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, sendEvents } from "./console-page.ts";

const database = await testDatabase();
const dataDir = mkdtempSync(join(tmpdir(), "belfry-restart-"));
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));
const { onPage } = testBrowser();

const start = async (port: number) => {
  const config = readConfig({
    DATABASE_URL: database.url,
    BELFRY_DATA_DIR: dataDir,
    BELFRY_PORT: String(port),
    BELFRY_SHUTDOWN_TIMEOUT: "500ms",
    BELFRY_MASTER_KEYS: masterKeys,
  });
  const server = await startServer(config, openLog("silent"));
  return { ...server, database, target: { url: server.url, ca: server.caFile } };
};

onPage("a server that is started again finds the session, and the list goes on by itself", async (page) => {
  const first = await start(0);
  const port = Number(new URL(first.url).port);
  const tenant = await testTenant(database.sql);
  await openConsole(page, first, tenant);
  await page.getByText("Live", { exact: true }).waitFor();
  await first.stop();
  await page.getByText("Not live: waiting for the server").waitFor();
  const second = await start(port);
  try {
    await sendEvents(second, tenant, [{ name: "after the restart", source: "a" }]);
    await page.getByRole("row").filter({ hasText: "after the restart" }).waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
  } finally {
    await second.stop();
  }
});

onPage(
  "a server that is away leaves what was shown where a person comes back to it, and one bar says it",
  async (page) => {
    const first = await start(0);
    const port = Number(new URL(first.url).port);
    const tenant = await testTenant(database.sql);
    await openConsole(page, first, tenant);
    await sendEvents(first, tenant, [{ name: "before it went", source: "a" }]);
    const row = page.getByRole("row").filter({ hasText: "before it went" });
    const go = (name: string) => page.getByRole("link", { name, exact: true }).click();
    const entity = page.getByRole("grid", { name: "Entities" }).getByRole("row").nth(1);
    await row.waitFor();
    await go("Entities");
    await entity.waitFor();
    await first.stop();
    await go("Events");
    await page.getByText(/^The server does not answer\. What is shown is from \S+ \S+ or before/).waitFor();
    await row.waitFor();
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    await go("Entities");
    await entity.waitFor();
    // Its code was not loaded before.
    await go("Rules");
    await page.getByText("The screen opens as soon as it does.").waitFor();
    expect(await page.getByRole("button", { name: "Load the page again" }).count()).toBe(0);
    await go("Events");
    await row.waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    const second = await start(port);
    try {
      await sendEvents(second, tenant, [{ name: "after it came", source: "a" }]);
      await page.getByRole("row").filter({ hasText: "after it came" }).waitFor();
      await go("Rules");
      await page.getByRole("heading", { name: "Rules", exact: true }).waitFor();
    } finally {
      await second.stop();
    }
  },
);
