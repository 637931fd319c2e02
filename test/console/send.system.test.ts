import { execFile, spawn } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { createLink } from "../../src/auth/console-links.ts";
import { transaction } from "../../src/db/transaction.ts";
import { clear, clusterPlace } from "../faults/place.ts";
import { freePort, installed } from "../integrations/programs.ts";
import { launchBrowser, testBrowser } from "../support/browser.ts";
import { temporaryDir } from "../support/database.ts";
import { httpReceiver, mailReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { openConsole } from "./console-page.ts";
import { clipboard, copied, paste, pasteFiles, start } from "./pasting.ts";

const receiver = await httpReceiver();
const relay = await mailReceiver();
afterAll(() => Promise.all([receiver[Symbol.asyncDispose](), relay[Symbol.asyncDispose]()]));
const server = await testServer({
  BELFRY_PLAINTEXT: "0",
  BELFRY_OUTBOUND_ALLOW: "127.0.0.1",
  BELFRY_SMTP_URL: `smtp://127.0.0.1:${relay.port}?ignoreTLS=true`,
  BELFRY_SMTP_SENDER: "belfry@example.com",
});
const { sql } = server.database;
const { onPage } = testBrowser();

const root = join(import.meta.dirname, "../..");

const newest = (page: Page, of: string) => page.getByRole("list", { name: `Newest of ${of}` });

/** Opens the page of a new tenant from an empty list, makes a key, and puts the two files into a new folder. */
async function opened(page: Page, program: string) {
  const tenant = await testTenant(sql);
  const dir = temporaryDir();
  await openConsole(page, server, tenant);
  await page.getByRole("link", { name: "Send the first data" }).click();
  await page.getByRole("heading", { level: 1, name: "Send data" }).waitFor();
  await page.getByRole("link", { name: program, exact: true }).click();
  await page.getByRole("heading", { name: "Events none yet" }).waitFor();
  return { tenant, dir };
}

async function prepared(page: Page, program: string) {
  const world = await opened(page, program);
  await pasteFiles(page, world.dir);
  return world;
}

describe("what is shown to paste, when it is pasted", () => {
  onPage("sends by curl, with a key that can do nothing else", clipboard, async (page) => {
    const { tenant, dir } = await prepared(page, "curl");
    expect(JSON.parse(await paste(dir, await copied(page, "An event")))).toMatchObject({ succeeded: 1, failed: 0 });
    await newest(page, "events").getByRole("link", { name: "first event" }).waitFor();
    expect(JSON.parse(await paste(dir, await copied(page, "A metric point")))).toMatchObject({ succeeded: 1 });
    await newest(page, "metrics").getByRole("link", { name: "queue.length" }).waitFor();
    expect(await newest(page, "entities").getByRole("link").count()).toBe(1);
    const [client] = await sql`select name, type from api_clients where tenant_id = ${tenant.id} and name = 'agents'`;
    expect(client).toMatchObject({ name: "agents", type: "DATA_INGEST" });
  });

  onPage("sends by OpenTelemetry's SDK; the Collector's file has the same address and key", clipboard, async (page) => {
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
  });

  onPage("sends by the host agent", clipboard, async (page) => {
    const { dir } = await prepared(page, "Host agent");
    for (const part of ["package.json", "scripts", "examples", "gen", "node_modules"])
      symlinkSync(join(root, part), join(dir, part));
    start(dir, await copied(page, "The host agent"));
    await newest(page, "metrics").getByRole("link").nth(2).waitFor();
    expect(await newest(page, "entities").getByRole("link").count()).toBe(3);
  });

  onPage("sends Prometheus' alerts and samples", clipboard, async (page) => {
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
  });
});

describe("the key that is made there", () => {
  onPage("is gone with the page, and with Undo", clipboard, async (page) => {
    const { dir } = await opened(page, "curl");
    await page.getByRole("button", { name: "Make a key" }).click();
    await page.getByText("It is shown this once").waitFor();
    const files = [await copied(page, "The key"), await copied(page, "The certificate")];
    const line = await copied(page, "An event");
    // The notice stays for ten seconds, and while the pointer is on it.
    await page.getByRole("button", { name: "Undo" }).hover();
    for (const file of files) await paste(dir, file);
    const key = readFileSync(join(dir, "belfry.key"), "utf8");
    expect(key).toMatch(/^bf_/);
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
  });

  onPage("is not offered to those who may not make one", async (page) => {
    const tenant = await testTenant(sql);
    const user = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "user") };
    await openConsole(page, server, user, "#/settings/send");
    await page.getByText("Your key may not make other keys.").waitFor();
    expect(await page.getByRole("button", { name: "Make a key" }).count()).toBe(0);
  });
});

const zone = "Europe/Berlin";
const weekdays = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const done = (page: Page) => page.getByRole("status", { name: "Done" });
const goTo = (page: Page, screen: string) => page.getByRole("link", { name: screen, exact: true }).first().click();

/** What alerts: a Prometheus with the lines that the console shows, or else the call that Prometheus makes. */
interface Alerting {
  /** This alert begins, on a machine of this name. */
  fire(alert: string, instance: string): Promise<void>;
}

/** Copies what the page Send data shows for Prometheus, and starts one that has it. */
async function alertingByPage(page: Page): Promise<Alerting> {
  const dir = temporaryDir();
  await page.getByRole("link", { name: "Send the first data" }).click();
  await page.getByRole("link", { name: "Prometheus", exact: true }).click();
  await pasteFiles(page, dir);
  const pasted = await copied(page, "Alerts and samples");
  const alerts: { alert: string; instance: string }[] = [];
  if (!installed("prometheus")) {
    return {
      async fire(alertname, instance) {
        const labels = { alertname, job: "node", instance, severity: "critical" };
        const body = JSON.stringify([{ labels, annotations: { summary: `${alertname} on ${instance}` } }]);
        const key = `-H "authorization: Bearer $(cat belfry.key)" -H 'content-type: application/json'`;
        await paste(dir, `curl -fsS --cacert belfry-ca.pem ${key} ${server.url}/api/v2/alerts -d '${body}'`);
      },
    };
  }
  const address = `127.0.0.1:${await freePort()}`;
  writeFileSync(join(dir, "prometheus.yml"), `global: { evaluation_interval: 1s }\nrule_files: [rules.yml]\n${pasted}`);
  const write = () => {
    const rules = alerts.map(({ alert, instance }) => ({
      alert,
      expr: "vector(1)",
      labels: { job: "node", instance, severity: "critical" },
      annotations: { summary: `${alert} on ${instance}` },
    }));
    writeFileSync(join(dir, "rules.yml"), JSON.stringify({ groups: [{ name: "first", rules }] }));
  };
  write();
  const switches = "--storage.tsdb.path=data --web.enable-lifecycle --rules.alert.resend-delay=2s";
  start(dir, `prometheus --config.file=prometheus.yml ${switches} --web.listen-address=${address}`);
  const ready = () =>
    fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await expect.poll(ready).toBe(true);
  return {
    async fire(alert, instance) {
      alerts.push({ alert, instance });
      write();
      expect((await fetch(`http://${address}/-/reload`, { method: "POST" })).ok).toBe(true);
    },
  };
}

/** The guide for the first rule: where it goes, which alerts, a test. */
async function makeRule(page: Page): Promise<void> {
  await goTo(page, "Rules");
  await page.getByRole("link", { name: "Guide", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Your first rule, in three steps" }).waitFor();
  const destination = page.getByRole("form", { name: "New destination" });
  await destination.getByLabel("Name", { exact: true }).first().fill("chat");
  await destination.getByLabel("Kind").selectOption({ label: "Webhook" });
  await destination.getByLabel("Address").fill(`${receiver.url}/hook`);
  await destination.getByRole("button", { name: "Create" }).click();
  const rule = page.getByRole("form", { name: "New rule" });
  await rule.getByLabel("Name", { exact: true }).fill("on call");
  await rule.getByLabel("Label 1").fill("severity");
  await rule.getByLabel("Value 1").fill("critical");
  await rule.getByLabel("Message").fill("{{{event.name}}} on {{{entity.name}}}");
  await rule.getByLabel("Keep silent about entities in maintenance").check();
  await rule.getByRole("button", { name: "Create the rule" }).click();
  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByText("The receiver has taken it.").waitFor();
  expect(receiver.received).toHaveLength(1);
}

/** A second destination of the same rule. */
async function addMail(page: Page): Promise<void> {
  await page.getByRole("link", { name: "Destinations", exact: true }).click();
  await page.getByRole("link", { name: "New destination" }).click();
  const destination = page.getByRole("form", { name: "New destination" });
  await destination.getByLabel("Name", { exact: true }).first().fill("mail");
  await destination.getByLabel("To", { exact: true }).fill("on-call@example.com");
  await destination.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { level: 1, name: "mail" }).waitFor();
  await page.getByRole("link", { name: "Rules", exact: true }).last().click();
  await page.getByRole("row").filter({ hasText: "on call" }).getByText("on call", { exact: true }).click();
  const rule = page.getByRole("form", { name: "Rule", exact: true });
  await rule.getByLabel("Destinations", { exact: true }).fill("mail");
  await rule.getByRole("button", { name: "Save" }).click();
  await done(page).getByText('The rule "on call" was changed.').waitFor();
}

/** A weekly window over what is called web-…, which is begun by hand, half an hour before its time. */
async function setWindow(page: Page): Promise<void> {
  await goTo(page, "Maintenance");
  await page.getByRole("link", { name: "New window" }).click();
  const form = page.getByRole("form", { name: "Maintenance window" });
  await form.getByLabel("Name", { exact: true }).fill("weekly patches");
  await form.getByLabel("Time zone").fill(zone);
  const begins = Temporal.Now.plainDateTimeISO(zone).add({ minutes: 30 });
  await form.getByLabel("Start of the first run").fill(begins.toString({ smallestUnit: "minute" }));
  await form.getByLabel("A run takes", { exact: true }).fill("2");
  await form.getByLabel("Repeats").selectOption({ label: "By weeks" });
  await form.getByRole("checkbox", { name: weekdays[begins.dayOfWeek - 1] }).check();
  await form.getByLabel("Field", { exact: true }).fill("name");
  await form.getByLabel("Comparison").selectOption({ label: "contains" });
  await form.getByLabel("Value", { exact: true }).fill("web-");
  await form.getByRole("button", { name: "Create the window" }).click();
  await page.getByRole("heading", { level: 1, name: "weekly patches" }).waitFor();
  await page.getByRole("button", { name: "Start now" }).click();
  await page.getByRole("button", { name: "End now" }).waitFor();
}

/** Opens the newest occurrence of this name from the list of events. */
async function openEvent(page: Page, name: string): Promise<void> {
  await goTo(page, "Events");
  await page.getByRole("row").filter({ hasText: name }).getByText(name, { exact: true }).click({ timeout: 60_000 });
  await page.getByRole("heading", { level: 1, name }).waitFor();
}

describe("a person on call", () => {
  onPage(
    "sets all of it up in the browser, hears of an alert, and finds out why not of the next one",
    { ...clipboard, viewport: { width: 1280, height: 900 } },
    async (page) => {
      const tenant = await testTenant(sql);
      const { token } = await transaction(sql, (tx) => createLink(tx, tenant.id, undefined));
      await page.goto(`${server.url}/console/#first=${token}`);
      await page.getByText("Nothing is open.").waitFor();

      const alerting = await alertingByPage(page);
      await makeRule(page);
      await addMail(page);

      await alerting.fire("DiskFull", "web-1:9100");
      await openEvent(page, "DiskFull");
      const deliveries = page.getByRole("region", { name: "Who was notified" });
      await deliveries.getByText("chat", { exact: true }).first().waitFor();
      await expect.poll(() => receiver.received.length).toBe(2);
      expect(JSON.parse(receiver.received[1]?.body.toString() ?? "")).toMatchObject({
        message: expect.stringMatching(/^DiskFull on .*web-1:9100/),
        clear: false,
      });
      await expect.poll(() => relay.mails.length).toBe(1);
      expect(relay.mails[0]).toMatchObject({ to: ["on-call@example.com"], raw: expect.stringContaining("DiskFull") });
      await page.getByRole("button", { name: "Acknowledge" }).click();
      await done(page).getByText("1 acknowledged").waitFor();

      await setWindow(page);
      const clock = page.getByRole("region", { name: "When the clock is changed" });
      const change = Temporal.Now.zonedDateTimeISO(zone).getTimeZoneTransition("next");
      if (change === null) throw new Error(`the clock of ${zone} is not changed any more`);
      await clock.getByText(/^On .* the clock is put (?:forward|back) by 1 h/).waitFor();
      const rows = await clock.getByRole("row").allTextContents();
      expect(rows.join("\n")).toContain(`UTC${change.subtract({ seconds: 1 }).offset}`);
      expect(rows.join("\n")).toContain(`UTC${change.offset}`);
      const held = async () => {
        await page.reload();
        await page.getByRole("button", { name: "End now" }).waitFor();
        return await page.getByRole("heading", { name: "Held now: 1" }).count();
      };
      await expect.poll(held).toBe(1);

      await alerting.fire("LinkDown", "web-1:9100");
      await openEvent(page, "LinkDown");
      const why = page.getByRole("region", { name: "Who was notified" });
      await why.getByText("The rule keeps silent: the entity is in maintenance.").waitFor();
      await why.getByText("Window: weekly patches").first().waitFor();
      expect(receiver.received.map(({ body }) => body.toString()).join()).not.toContain("LinkDown");
      expect(relay.mails.map(({ raw }) => raw).join()).not.toContain("LinkDown");
    },
  );
});

/** Runs a program on a terminal of its own (util-linux): the link that logs in is printed to terminals alone. */
const terminal = "/usr/bin/script";

/** `npm start` as a newcomer types it, with what its terminal shows. Ends as by Ctrl-C. */
async function npmStart(dir: string, signal: AbortSignal) {
  const child = spawn(terminal, ["-qec", "npm start", "/dev/null"], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, BELFRY_DATA_DIR: dir, BELFRY_PORT: "0" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let shown = "";
  child.stdout.on("data", (text) => (shown += text));
  const stop = async () => {
    child.stdin.write("\x03");
    if (child.exitCode === null) await once(child, "exit");
  };
  while (!/SEVERITY_BAD[^\n]*\n/.test(shown)) {
    if (child.exitCode !== null) throw new Error(`the server did not start: ${shown}`);
    if (signal.aborted) {
      await stop();
      throw new Error(`the server did not greet: ${shown}`);
    }
    await sleep(50);
  }
  return { lines: shown.replaceAll("\r", "").split("\n"), stop };
}

/** A key as Chromium's switch takes it: this key alone is trusted, by whatever name; any other certificate is refused as ever. */
function keyDigest(certificateFile: string): string {
  const { publicKey } = new X509Certificate(readFileSync(certificateFile));
  return createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest("base64");
}

test("a newcomer opens the link that `npm start` prints, sends the printed event, and acknowledges it", async ({
  skip,
  signal,
}) => {
  if (!existsSync(terminal)) return skip(`${terminal} is not installed`);
  const dir = await clusterPlace();
  const server = await npmStart(dir, signal);
  const trusting = `--ignore-certificate-errors-spki-list=${keyDigest(join(dir, "server.pem"))}`;
  const { browser, missing } = await launchBrowser([trusting]);
  try {
    const at = server.lines.findIndex((line) => line.startsWith("Console: "));
    const [, link = "", origin = ""] =
      /^Console: ((https:\S+)\/console\/#first=\S+) {2}\(logs in once, within 30 minutes\)$/.exec(
        server.lines[at] ?? "",
      ) ?? [];
    expect(server.lines[at + 1]).toBe(
      `Browsers warn of its certificate, which only this machine has signed; ${origin}/certificate says how to trust it.`,
    );
    if (browser === undefined) return skip(missing);
    const page = await browser.newPage();
    await page.goto(link);
    await page.getByText("Nothing is open.").waitFor();
    expect(page.url()).not.toContain("first=");
    const send = server.lines.find((line) => line.startsWith("curl ") && line.includes("SEVERITY_ERROR"));
    const { stdout } = await promisify(execFile)("bash", ["-c", send ?? "false"], { cwd: root });
    expect(JSON.parse(stdout)).toMatchObject({ succeeded: 1 });
    const groups = page.getByRole("list", { name: "Groups by alertname" });
    await groups
      .getByRole("button", { name: /disk full/ })
      .first()
      .click();
    await page.getByRole("button", { name: "Acknowledge all 1 of disk full" }).click();
    await page.getByText("1 acknowledged").waitFor();
    await groups.getByText("1 of 1 acked").waitFor();
    await page.goto(`${origin}/certificate`);
    await page.getByText(new X509Certificate(readFileSync(join(dir, "ca.pem"))).fingerprint256).waitFor();
    // The link holds once: another browser is asked for a key.
    const other = await (await browser.newContext()).newPage();
    await other.goto(link);
    await other.getByLabel("API key").waitFor();
  } finally {
    await browser?.close();
    await server.stop();
    await clear(dir);
  }
});
