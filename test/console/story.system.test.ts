import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, describe, expect } from "vitest";
import { createLink } from "../../src/auth/console-links.ts";
import { transaction } from "../../src/db/transaction.ts";
import { freePort, installed } from "../integrations/programs.ts";
import { testBrowser } from "../support/browser.ts";
import { temporaryDir } from "../support/database.ts";
import { httpReceiver, mailReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
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

/** The guide for the first rule: what counts, where it goes, the rule that joins them, a test. */
async function makeRule(page: Page): Promise<void> {
  await goTo(page, "Rules");
  await page.getByRole("link", { name: "Guide", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Your first rule, in four steps" }).waitFor();
  const trigger = page.getByRole("form", { name: "Trigger" });
  await trigger.getByLabel("Name", { exact: true }).fill("what is critical");
  const conditions = trigger.getByRole("group", { name: "An event matches when" });
  await conditions.getByLabel("Field").fill("severity");
  await conditions.getByLabel("Comparison").selectOption({ label: "is at least" });
  await conditions.getByLabel("Value", { exact: true }).selectOption({ label: "critical" });
  await trigger.getByRole("button", { name: "Create the trigger" }).click();
  const destination = page.getByRole("form", { name: "New destination" });
  await destination.getByLabel("Name", { exact: true }).first().fill("chat");
  await destination.getByLabel("Kind").selectOption({ label: "Webhook" });
  await destination.getByLabel("Address").fill(`${receiver.url}/hook`);
  await destination.getByRole("button", { name: "Create" }).click();
  const rule = page.getByRole("form", { name: "New rule" });
  await rule.getByLabel("Name", { exact: true }).fill("on call");
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
    { ...clipboard, viewport: { width: 1280, height: 900 } },
  );
});
