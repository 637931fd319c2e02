import { appendFileSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { parse } from "yaml";
import { freePort, installed } from "../integrations/programs.ts";
import { testBrowser } from "../support/browser.ts";
import { temporaryDir } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { openConsole } from "./console-page.ts";
import { clipboard, copied, paste, pasteFiles, start } from "./pasting.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { sql } = server.database;
const { onPage } = testBrowser();
const root = join(import.meta.dirname, "../..");

const newest = (page: Page, of: string) => page.getByRole("list", { name: `Newest of ${of}` });

/** Opens the page of a new tenant from an empty list, makes a key, and puts the two files into a new folder. */
async function prepared(page: Page, program: string) {
  const tenant = await testTenant(sql);
  const dir = temporaryDir();
  await openConsole(page, server, tenant);
  await page.getByRole("link", { name: "Send the first data" }).click();
  await page.getByRole("heading", { level: 1, name: "Send data" }).waitFor();
  await page.getByRole("link", { name: program, exact: true }).click();
  await page.getByRole("heading", { name: "Events none yet" }).waitFor();
  await pasteFiles(page, dir);
  return { tenant, dir };
}

describe("what is shown to paste, when it is pasted", () => {
  onPage(
    "sends by curl, with a key that can do nothing else",
    async (page) => {
      const { tenant, dir } = await prepared(page, "curl");
      expect(JSON.parse(await paste(dir, await copied(page, "An event")))).toMatchObject({ succeeded: 1, failed: 0 });
      await newest(page, "events").getByRole("link", { name: "first event" }).waitFor();
      expect(JSON.parse(await paste(dir, await copied(page, "A metric point")))).toMatchObject({ succeeded: 1 });
      await newest(page, "metrics").getByRole("link", { name: "queue.length" }).waitFor();
      expect(await newest(page, "entities").getByRole("link").count()).toBe(1);
      const [client] = await sql`select name, type from api_clients where tenant_id = ${tenant.id} and name = 'agents'`;
      expect(client).toMatchObject({ name: "agents", type: "DATA_INGEST" });
    },
    clipboard,
  );

  onPage(
    "sends by OpenTelemetry's SDK; the Collector's file has the same address and key",
    async (page) => {
      const { dir } = await prepared(page, "OpenTelemetry");
      const sdk = await copied(page, "An SDK");
      await paste(dir, `${sdk}\nnode ${root}/examples/opentelemetry/shop.ts`);
      await newest(page, "events").getByRole("link", { name: "stock.low" }).waitFor();
      await newest(page, "entities").getByRole("link", { name: /shop/ }).waitFor();
      await newest(page, "metrics")
        .getByRole("link", { name: /^shop\./ })
        .first()
        .waitFor();
      const { exporters, service } = parse(await copied(page, "The Collector"));
      expect(exporters.otlp).toEqual({
        endpoint: new URL(server.url).host,
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the Collector's own way to name a variable
        headers: { authorization: "Bearer ${env:BELFRY_KEY}" },
        tls: { ca_file: "belfry-ca.pem" },
      });
      expect(Object.keys(service.pipelines)).toEqual(["metrics", "logs"]);
      expect(await copied(page, "Start the Collector")).toMatch(/^BELFRY_KEY="\$\(cat belfry.key\)" otelcol /);
    },
    clipboard,
  );

  onPage(
    "sends by the host agent",
    async (page) => {
      const { dir } = await prepared(page, "Host agent");
      for (const part of ["package.json", "scripts", "examples", "gen", "node_modules"])
        symlinkSync(join(root, part), join(dir, part));
      start(dir, await copied(page, "The host agent"));
      await newest(page, "metrics").getByRole("link").nth(2).waitFor();
      expect(await newest(page, "entities").getByRole("link").count()).toBe(3);
    },
    clipboard,
  );

  onPage(
    "sends Prometheus' alerts and samples",
    async (page) => {
      const { dir } = await prepared(page, "Prometheus");
      const pasted = await copied(page, "Alerts and samples");
      const { alerting, remote_write } = parse(pasted);
      expect(alerting.alertmanagers[0].static_configs[0].targets).toEqual([new URL(server.url).host]);
      expect(remote_write[0].url).toBe(`${server.url}/api/v1/write`);
      if (!installed("prometheus", "promtool")) return;
      const address = `127.0.0.1:${await freePort()}`;
      const own = `global: { scrape_interval: 1s, evaluation_interval: 1s }
scrape_configs: [{ job_name: self, static_configs: [{ targets: ["${address}"] }] }]
rule_files: [rules.yml]
`;
      writeFileSync(join(dir, "prometheus.yml"), own);
      appendFileSync(join(dir, "prometheus.yml"), pasted);
      const rule = { alert: "Watchdog", expr: "vector(1)" };
      writeFileSync(join(dir, "rules.yml"), JSON.stringify({ groups: [{ name: "first", rules: [rule] }] }));
      expect(await paste(dir, await copied(page, "Check"))).toContain("SUCCESS: prometheus.yml is valid");
      // It finds its alertmanagers some seconds after its start, and alerts of before are sent when they are sent again.
      const switches = "--storage.tsdb.path=data --rules.alert.resend-delay=2s";
      start(dir, `prometheus --config.file=prometheus.yml ${switches} --web.listen-address=${address}`);
      await newest(page, "events").getByRole("link", { name: "Watchdog" }).waitFor({ timeout: 45_000 });
      await newest(page, "metrics").getByRole("link").first().waitFor();
    },
    clipboard,
  );
});

describe("the key that is made there", () => {
  onPage(
    "is gone with the page, and with Undo",
    async (page) => {
      const { dir } = await prepared(page, "curl");
      const key = readFileSync(join(dir, "belfry.key"), "utf8");
      expect(key).toMatch(/^bf_/);
      const line = await copied(page, "An event");
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Taken back.").waitFor();
      expect(await page.content()).not.toContain(key);
      await expect.poll(async () => JSON.parse(await paste(dir, line)).code).toBe(16);
      await page.getByRole("button", { name: "Make a key" }).click();
      await page.getByText("It is shown this once").waitFor();
      const shown = await page.getByRole("textbox", { name: "The key" }).inputValue();
      expect(shown).toMatch(/^bf_/);
      await page.reload();
      await page.getByRole("button", { name: "Make a key" }).waitFor();
      const kept =
        "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.body.textContent, location.href])";
      expect(await page.evaluate(kept)).not.toContain(shown);
    },
    clipboard,
  );

  onPage("is not offered to those who may not make one", async (page) => {
    const tenant = await testTenant(sql);
    const user = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "user") };
    await openConsole(page, server, user, "#/settings/send");
    await page.getByText("Your key may not make other keys.").waitFor();
    expect(await page.getByRole("button", { name: "Make a key" }).count()).toBe(0);
  });
});
