import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { testBrowser } from "../support/browser.ts";
import { raw } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { masterKeys, type TestServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { openConsole, ordinaryDay, sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

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
    // Otherwise the code of all screens comes after three seconds: a slow machine would have it before the server is away.
    await page.addInitScript(
      "const later = setTimeout; setTimeout = (act, ms, ...rest) => (ms === 3000 ? 0 : later(act, ms, ...rest));",
    );
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

/** Forms that are filled while the server answers and saved while it does not, the call that answers what was saved, and what is said of it. */
const forms = [
  {
    what: "a rule",
    hash: () => "#/rules/rules/page%20on%20critical",
    field: "Message",
    send: "Save",
    stored: ["GET", "/v1/notification/rules/page%20on%20critical"],
    said: /^The rule .* was changed\.$/,
  },
  {
    what: "a destination",
    hash: () => "#/rules/destinations/on%20call",
    field: "Address",
    send: "Save",
    stored: ["GET", "/v1/notification/destinations/on%20call"],
    said: /^The destination .* was changed\.$/,
  },
  {
    what: "a window",
    hash: ({ window }: Ids) => `#/windows/${window}?edit=1`,
    field: "Description",
    send: "Save the window",
    stored: ["POST", "/v1/modelcontext/maintwindows:list"],
    said: /^The window .* was changed\.$/,
  },
  {
    what: "a silence",
    hash: ({ occurrence }: Ids) => `#/silences/new?occurrence=${occurrence}`,
    field: "Comment",
    send: "Silence",
    stored: ["GET", "/v1/notification/silences"],
    said: "Silence created.",
  },
] as const;
const typed = "https://hooks.example.invalid/night";

interface Ids {
  readonly window: string;
  readonly occurrence: string;
}

/** A window and an occurrence beside what there is on an ordinary day. */
async function somethingOfAll(server: TestServer, tenant: TestTenant): Promise<Ids> {
  await ordinaryDay(server, tenant);
  const call = v1(server, tenant);
  const webs = { clause: { filter: { field: "name", operation: "OP_STARTS_WITH", value: "web-" } } };
  const schedule = { start: Date.now() + 3_600_000, duration: 3_600_000 };
  const specification = { name: "Patch night", schedule, maintenanceState: 300, query: webs };
  const { id: window } = await call("/v1/modelcontext/maintwindows", { specification });
  const clause = { filter: { field: "name", operation: "OP_EQUALS", value: "disk full" } };
  const { results } = await call("/v1/events:search", { query: { clause } });
  return { window, occurrence: encodeURIComponent(results[0].occurrences[0].id) };
}

onPage(
  "forms say once that the server did not answer, keep what was typed, and save it when the server is back",
  async (page) => {
    let server = await start(0);
    const port = Number(new URL(server.url).port);
    const tenant = await testTenant(database.sql);
    const ids = await somethingOfAll(server, tenant);
    await openConsole(page, server, tenant);
    for (const { what, hash, field, send, said, stored } of forms) {
      await page.goto(`${server.url}/console/${hash(ids)}`);
      const button = page.getByRole("button", { name: send, exact: true });
      const form = page.locator("form").filter({ has: button });
      const input = form.getByLabel(field, { exact: true });
      await button.waitFor();
      if (!(await input.isVisible())) await form.locator("summary").filter({ hasText: "More" }).click();
      await input.fill(typed);
      await server.stop();
      await button.click();
      await form.getByRole("alert").getByText("this may not have been done").waitFor();
      expect(await page.getByRole("alert").count(), what).toBe(1);
      // Beside the form the frame alone says that what is shown is old.
      expect(await page.getByText(/server (?:does|did) not answer/i).count(), what).toBe(2);
      expect(await input.inputValue(), what).toBe(typed);
      server = await start(port);
      await page.getByText("Live", { exact: true }).waitFor();
      expect(await input.inputValue(), what).toBe(typed);
      await button.click();
      await page.getByText(said).waitFor();
      const [method, path] = stored;
      const headers = { ...tenant.headers, ...(method === "POST" && { "content-type": "application/json" }) };
      const asked = { method, path, headers, ...(method === "POST" && { body: [Buffer.from("{}")] }) };
      const answer = async () => (await raw(server.target, "2", asked)).body.toString();
      await expect.poll(answer, { message: what, timeout: 30_000 }).toContain(typed);
    }
    await server.stop();
  },
);
