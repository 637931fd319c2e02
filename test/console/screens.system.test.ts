import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect } from "vitest";
import { testBrowser } from "../support/browser.ts";
import { extract } from "../support/cases.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, ordinaryDay } from "./console-page.ts";
import { v1 } from "./json-call.ts";
import { someSilence, someWindows } from "./some-windows.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const tenant = await testTenant(server.database.sql);
const empty = await testTenant(server.database.sql);
const { onPage } = testBrowser();

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Where `npm run screenshots` wants what is seen here; else nothing is kept. */
const imagesDir = process.env.SCREENSHOTS;

/** What the page has of axe once it was put into it. */
interface Axe {
  run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}

/** Waits until nothing on the page says that it loads, then looks for violations of the rules of accessibility that `held` names: all, if none. */
async function settled(page: Page, heading: string, image: string, held: object = {}) {
  await page.getByRole("heading", { level: 1, name: heading }).waitFor();
  // What a screen asks for is asked once it is drawn.
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 50)))");
  await page.locator('main:not([aria-busy="true"])').waitFor();
  // Not by a function in the page: what is asked there again and again needs eval, which the page's policy refuses.
  await page
    .getByText(/\b(?:Loading|Searching|Connecting|Rendering)…/)
    .first()
    .waitFor({ state: "hidden" });
  if (imagesDir) await page.screenshot({ path: `${imagesDir}/console-${image}.png` });
  // Nothing has to be scrolled sideways, also at 400 %.
  const wide =
    "[...document.querySelectorAll('body, main, main *:not(pre, select, input)')].filter((each) => each.scrollWidth > each.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(each).overflowX)).map((each) => each.className)";
  expect(await page.evaluate(wide), image).toEqual([]);
  // The address changes its fragment alone: the document stays, and what was put into it.
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axe);
  return await page.evaluate(
    async (options) => {
      const { violations } = await (globalThis as unknown as { axe: Axe }).axe.run(options);
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
    },
    { resultTypes: ["violations"], ...held },
  );
}

/**
 * Wide is held to all rules; dark differs from it in colours alone, and narrow in all but colours. The gate takes each `step`-th screen of
 * these two: they share what lists, forms and cards are drawn by.
 */
const looks = [
  { name: "wide", step: 1, held: {}, colorScheme: "light", viewport: { width: 1280, height: 800 } },
  {
    name: "dark",
    step: 4,
    held: { runOnly: ["color-contrast"] },
    colorScheme: "dark",
    viewport: { width: 1280, height: 800 },
  },
  {
    name: "narrow",
    step: 2,
    held: { rules: { "color-contrast": { enabled: false } } },
    colorScheme: "light",
    viewport: { width: 390, height: 844 },
  },
] as const;

const webs = { field: "name", operation: "OP_STARTS_WITH", value: "web-" };

let entity = "";
let occurrence = "";
let window = "";
let running = "";
let credential = "";
let account = "";
let client = "";
beforeAll(async () => {
  if (imagesDir) await server.database.sql`update tenants set name = 'example' where id = ${tenant.id}`;
  await ordinaryDay(server, tenant);
  const call = v1(server, tenant);
  const slow = { metricName: "latency.p99", min: 0.15, max: 0.45, entityQuery: { clause: { filter: webs } } };
  await call("/v1/notification/triggers", { name: "slow answers", type: { metricThreshold: slow } });
  const silent = { metricName: "system.cpu.utilization", durationSec: 900, entityQuery: { clause: { filter: webs } } };
  await call("/v1/notification/triggers", { name: "silent", type: { staleData: silent } });
  const clause = { filter: { field: "name", operation: "OP_EQUALS", value: "web-1" } };
  const { entities } = await call("/v1/modelcontext/entities:search", { search_input: { query: { clause } } });
  entity = encodeURIComponent(entities.entities[0].id);
  ({ planned: window, running } = await someWindows(server, tenant));
  await someSilence(server, tenant);
  const secrets = { token: "xoxb-1234-s3cret" };
  const info = { name: "chat", type: "teamChat", allowedHosts: ["slack.com"], description: "the app's bot" };
  const stored = await call("/v1/credentials", { info, secrets });
  credential = stored.info.id;
  const type = { teamChat: { channel: "ops", credentialId: credential } };
  await call("/v1/notification/destinations", { name: "team", type, maxPerMinute: 30, tags: ["night"] });
  const named = { filter: { field: "name", operation: "OP_EQUALS", value: "disk full" } };
  const { results } = await call("/v1/events:search", { query: { clause: named } });
  occurrence = encodeURIComponent(results[0].occurrences[0].id);
  const { ids } = await call("/v1/user-mgmt/end-user-account-ids", { email: "ada@example.com" });
  account = encodeURIComponent(ids[0]);
  const { apiClient } = await call("/v1/api-clients", { name: "collector", type: "DATA_INGEST" });
  client = encodeURIComponent(apiClient.id);
  await call(`/v1/api-clients/${client}/keys`, {
    description: "of the first host, which sends what the others collect",
  });
});

const screens = [
  { image: "events", heading: "Events", hash: () => "#/events" },
  {
    image: "conditions",
    heading: "Events",
    hash: () =>
      `#/events?where=${encodeURIComponent('{"filter":{"field":"name","operation":"OP_CONTAINS","value":"l"}}')}`,
  },
  { image: "events-groups", heading: "Events", hash: () => "#/events?group=alertname" },
  { image: "occurrence", heading: "disk full", hash: () => `#/occurrences/${occurrence}` },
  { image: "entities", heading: "Entities", hash: () => "#/entities?group=rack" },
  { image: "entity", heading: "web-1", hash: () => `#/entities/${entity}` },
  { image: "metrics", heading: "Metrics", hash: () => `#/metrics?entity=${entity}&range=6h` },
  { image: "deliveries", heading: "Deliveries", hash: () => "#/deliveries" },
  { image: "rules", heading: "Rules", hash: () => "#/rules" },
  { image: "rule", heading: "page on critical", hash: () => "#/rules/rules/page%20on%20critical" },
  { image: "rule-new", heading: "New rule", hash: () => "#/rules/rules?new=1" },
  { image: "guide", heading: "Your first rule, in three steps", hash: () => "#/rules/guide" },
  { image: "dead-mans-switch", heading: "Dead man's switch", hash: () => "#/rules/dead-mans-switch" },
  {
    image: "guide-end",
    heading: "Your first rule, in three steps",
    hash: () => "#/rules/guide?destination=on%20call&rule=quiet",
  },
  { image: "windows", heading: "Maintenance", hash: () => "#/windows" },
  { image: "silences", heading: "Silences", hash: () => "#/silences" },
  { image: "silence-new", heading: "New silence", hash: () => `#/silences/new?occurrence=${occurrence}` },
  { image: "window", heading: "Patch night", hash: () => `#/windows/${window}` },
  { image: "window-running", heading: "Move of the data centre", hash: () => `#/windows/${running}` },
  { image: "window-new", heading: "New maintenance window", hash: () => "#/windows/new" },
  { image: "window-form", heading: "Change Patch night", hash: () => `#/windows/${window}?edit=1` },
  { image: "destinations", heading: "Destinations", hash: () => "#/rules/destinations" },
  { image: "destination", heading: "on call", hash: () => "#/rules/destinations/on%20call" },
  { image: "destination-new", heading: "New destination", hash: () => "#/rules/destinations?new=1" },
  { image: "credentials", heading: "Credentials", hash: () => "#/settings/credentials" },
  { image: "credential", heading: "chat", hash: () => `#/settings/credentials/${credential}` },
  { image: "credential-new", heading: "New credential", hash: () => "#/settings/credentials?new=videoMeeting" },
  { image: "keys", heading: "Keys", hash: () => "#/settings/keys" },
  { image: "client", heading: "collector", hash: () => `#/settings/keys/${client}` },
  { image: "new-client", heading: "New client", hash: () => "#/settings/keys?new=1" },
  { image: "accounts", heading: "Accounts", hash: () => "#/settings/accounts" },
  { image: "account", heading: "ada@example.com", hash: () => `#/settings/accounts/${account}` },
  { image: "new-account", heading: "New account", hash: () => "#/settings/accounts?new=1" },
  { image: "groups", heading: "Groups", hash: () => "#/settings/groups" },
  { image: "group", heading: "On call", hash: () => "#/settings/groups/On%20call" },
  { image: "dictionary", heading: "Dictionary", hash: () => "#/settings/dictionary" },
  {
    image: "entry",
    heading: "system.cpu.utilization",
    hash: () => "#/settings/dictionary/metrics/system.cpu.utilization",
  },
  { image: "properties", heading: "Custom properties", hash: () => "#/settings/properties" },
  { image: "updater", heading: "New updater", hash: () => "#/settings/properties?new=1" },
  { image: "set-once", heading: "Set properties once", hash: () => "#/settings/properties?once=1" },
  { image: "audit", heading: "Audit log", hash: () => "#/settings/audit" },
  { image: "triggers", heading: "Triggers", hash: () => "#/rules/triggers" },
  { image: "trigger", heading: "critical", hash: () => "#/rules/triggers/critical" },
  { image: "trigger-metric", heading: "slow answers", hash: () => "#/rules/triggers/slow%20answers?range=6h" },
  { image: "trigger-stale", heading: "silent", hash: () => "#/rules/triggers/silent" },
  { image: "trigger-new", heading: "New trigger", hash: () => "#/rules/triggers?new=yes" },
  ...["curl", "prometheus", "opentelemetry", "agent"].map((program) => ({
    image: `send-${program}`,
    heading: "Send data",
    hash: () => `#/settings/send?with=${program}`,
  })),
];

describe.each(looks)("every screen, $name", ({ name, step, held, ...look }) => {
  onPage("breaks no rule of accessibility", look, async (page) => {
    await page.goto(`${server.url}/console/`);
    expect(await settled(page, "Log in", `log-in-${name}`, held)).toEqual([]);
    await openConsole(page, server, tenant);
    for (const { image, heading, hash } of extract(screens, imagesDir ? 1 : step)) {
      await page.goto(`${server.url}/console/${hash()}`);
      expect(await settled(page, heading, `${image}-${name}`, held), image).toEqual([]);
    }
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Find by name" }).fill("web");
    await page.getByRole("option", { name: /web-2/ }).waitFor();
    expect(await settled(page, "Send data", `find-${name}`, held)).toEqual([]);
    await page.keyboard.press("Escape");
    // By its element: a dialog that is closed has no role from then on, and goes a moment later.
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    expect(await settled(page, "Send data", `key-list-${name}`, held)).toEqual([]);
  });
});

describe("every screen of a tenant that has nothing", () => {
  onPage("says what would be there", { viewport: { width: 1280, height: 800 } }, async (page) => {
    await openConsole(page, server, empty);
    const says = {
      Events: "Nothing is open.",
      Entities: "There are no entities yet.",
      Metrics: "Choose an entity",
      Deliveries: "Nothing was sent yet.",
      Rules: "There are no rules yet: no one is notified of anything.",
      Maintenance: "There are no maintenance windows.",
      Silences: "No silence is active.",
    };
    for (const [heading, text] of Object.entries(says)) {
      await page.getByRole("link", { name: heading, exact: true }).click();
      await page.getByText(text).waitFor();
      expect(await settled(page, heading, `${heading.toLowerCase()}-empty`), heading).toEqual([]);
    }
    const sections = {
      Triggers: ["rules/triggers", "There are no triggers yet."],
      Destinations: ["rules/destinations", "There are no destinations yet."],
      Credentials: ["settings/credentials", "There are no credentials yet."],
    };
    for (const [heading, [path = "", text = ""]] of Object.entries(sections)) {
      await page.goto(`${server.url}/console/#/${path}`);
      await page.getByText(text).waitFor();
      expect(await settled(page, heading, `${heading.toLowerCase()}-empty`), path).toEqual([]);
    }
  });
});
