// The console on many open events in Chromium, its processor slowed: how soon the list is there after a load, and how long each
// interaction takes until the next paint (INP).
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Page } from "playwright-core";
import { launchBrowser } from "../test/support/browser.ts";
import { estate } from "./load/estate.ts";
import { startChild } from "./support/child.ts";
import { startDatabase } from "./support/database.ts";
import { machineFacts } from "./support/machine.ts";
import { quantileOf } from "./support/models.ts";
import { progress } from "./support/progress.ts";
import { commandOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

const { values: given } = parseArgs({
  options: {
    events: { type: "string", default: "5000" },
    rounds: { type: "string", default: "3" },
    slower: { type: "string", default: "4" },
    profile: { type: "string" },
  },
});
const count = Number(given.events);
const rounds = Number(given.rounds);
const slower = Number(given.slower);

/** An interaction, by the longest of its events, in ms. */
interface Interaction {
  event: string;
  atMs: number;
  durationMs: number;
  /** Until its handlers run, while they do, and from then to the paint. */
  delayMs: number;
  handlersMs: number;
  paintMs: number;
}

/** The browser reports only events of 16 ms and more, in steps of 8. */
const reportedMs = 16;
/** For Chrome's DevTools: scripts, styles, layout and paint. */
const traced = [
  "toplevel",
  "devtools.timeline",
  "disabled-by-default-devtools.timeline",
  "disabled-by-default-v8.cpu_profiler",
];
/** Runs in the page before its own scripts. */
const watch = `
  const interactions = (window.benchInteractions = new Map());
  const keep = (list) => {
    for (const { name, interactionId, startTime, duration, processingStart, processingEnd } of list.getEntries()) {
      if (!interactionId || (interactions.get(interactionId)?.durationMs ?? 0) >= duration) continue;
      interactions.set(interactionId, {
        event: name,
        atMs: startTime,
        durationMs: duration,
        delayMs: processingStart - startTime,
        handlersMs: processingEnd - processingStart,
        paintMs: startTime + duration - processingEnd,
      });
    }
  };
  new PerformanceObserver(keep).observe({ type: "event", durationThreshold: ${reportedMs}, buffered: true });
  const rows = new MutationObserver(() => {
    if (!document.querySelector('[role="grid"] [role="row"][aria-rowindex="2"], ul[aria-label^="Groups by"] > li')) return;
    rows.disconnect();
    requestAnimationFrame(() => setTimeout(() => (window.benchRowsMs = performance.now())));
  });
  rows.observe(document, { childList: true, subtree: true });
`;

await using database = await startDatabase("shared");
await using child = startChild("shared", "servers/belfry.ts", database.env);
const { port } = await child.ask<{ port: number }>();
const url = `http://127.0.0.1:${port}`;
console.log(`${commandOf("console", process.argv.slice(2))}\n`);
for (const line of machineFacts(database.version, true)) console.log(line);

const { names } = estate();
for (let from = 0; from < count; from += 1000) {
  const events = Array.from({ length: Math.min(1000, count - from) }, (_, i) => {
    const n = from + i;
    return {
      name: names[n % names.length],
      timestamp: String(Date.now()),
      dimensions: { host: `web-${Math.floor(n / names.length)}` },
      severity: 1 + (n % 5),
      status: "STATUS_OPEN",
      summary: `the ${n}th of many`,
      metadataFields: { team: `team ${n % 7}`, namespace: `space-${n % 12}` },
    };
  });
  const headers = { ...database.key, "content-type": "application/json" };
  const answer = await fetch(`${url}/v1/data-receiver/events`, {
    method: "POST",
    headers,
    body: JSON.stringify({ events }),
  });
  if (!answer.ok) throw new Error(`events: ${answer.status} ${await answer.text()}`);
}
progress(`${count} events are open`);

const { browser, missing } = await launchBrowser([], mkdtempSync(join(tmpdir(), "belfry-bench-")));
if (browser === undefined) throw new Error(missing);
// Playwright looks into the page by `eval`, which the console's policy forbids.
const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, bypassCSP: true });
console.log(`Chromium ${browser.version()}, its processor slowed ${slower} times\n`);
await page.goto(`${url}/console/`);
await page.getByLabel("API key").fill(database.key["service-api-key"] ?? "");
await page.getByRole("button", { name: "Log in" }).click();
await page.getByText(`${count.toLocaleString("en")} occurrences`).waitFor();
await page.addInitScript(watch);
const devtools = await page.context().newCDPSession(page);
await devtools.send("Emulation.setCPUThrottlingRate", { rate: slower });

const grid = page.getByRole("grid", { name: "Events" });
const search = page.getByRole("searchbox", { name: "Search events" });
const rowAt = (place: number) => page.locator(`[role="row"][aria-rowindex="${place}"]`);
const found = (text: RegExp) => page.locator('main:not([aria-busy="true"])').getByText(text).waitFor();

/** What a person does, one after the other, each from where the one before has ended. */
const steps: Readonly<Record<string, (on: Page) => Promise<void>>> = {
  async "scroll by wheel, Page Down and Home"({ mouse, keyboard }) {
    await grid.hover();
    for (let turns = 0; turns < 20; turns += 1) {
      await mouse.wheel(0, 1500);
      await page.waitForTimeout(50);
    }
    await grid.focus();
    for (const key of ["PageDown", "PageDown", "PageDown", "PageDown", "Home"]) await keyboard.press(key);
    await rowAt(2).waitFor();
  },
  async "step by j"({ keyboard }) {
    for (let rows = 0; rows < 5; rows += 1) await keyboard.press("j", { delay: 100 });
  },
  async "select a row"() {
    for (const place of [3, 5, 7, 9]) await rowAt(place).locator("[data-pick]").click();
    await page.getByText("4 selected").waitFor();
    await page.getByRole("button", { name: "Select none" }).click();
  },
  async "open an event"() {
    await rowAt(4).getByRole("link").first().click();
    await page.getByRole("heading", { name: "Who was notified" }).waitFor();
  },
  async "go back to the list"() {
    await page.getByRole("main").getByRole("link", { name: "Events", exact: true }).click();
    await rowAt(4).waitFor();
  },
  async "type into the search field"({ keyboard }) {
    await search.focus();
    await keyboard.type("disk full", { delay: 60 });
    await keyboard.press("Enter");
    await page.getByRole("button", { name: "Remove disk full" }).waitFor();
    await found(/^\d{1,3} occurrences$/);
    await page.getByRole("button", { name: "Remove disk full" }).click();
    await found(new RegExp(`^${count.toLocaleString("en")} occurrences$`));
  },
  async "switch grouping"({ keyboard }) {
    await page.getByRole("combobox", { name: "Group by" }).focus();
    await keyboard.press("ArrowDown");
    await page
      .getByRole("list", { name: /^Groups by/ })
      .getByRole("listitem")
      .first()
      .waitFor();
    await keyboard.press("ArrowUp");
    await rowAt(4).waitFor();
  },
};

/** How many interactions there have been, with the shorter ones, and what is known of the others. */
const interactions = () =>
  page.evaluate<{ count: number; known: Interaction[] }>(
    "({ count: performance.interactionCount, known: [...window.benchInteractions.values()] })",
  );

/** Loads a screen without a cache. Resolves with how long it took until its rows, or groups, were there. */
async function load(hash: string): Promise<number> {
  await devtools.send("Network.clearBrowserCache");
  await page.goto("about:blank");
  await page.goto(`${url}/console/${hash}`);
  const tookMs = (await (await page.waitForFunction("window.benchRowsMs")).jsonValue()) as number;
  await found(new RegExp(`^${count.toLocaleString("en")} occurrences$`));
  return tookMs;
}

const loadsMs = { "the first screen": [] as number[], "the list": [] as number[] };
const byStep = new Map<string, Interaction[]>(Object.keys(steps).map((name) => [name, []]));
const tooShort: Interaction = { event: "–", atMs: 0, durationMs: 8, delayMs: 0, handlersMs: 0, paintMs: 0 };
for (let round = 1; round <= rounds; round += 1) {
  progress(`round ${round}`);
  loadsMs["the first screen"].push(await load(""));
  loadsMs["the list"].push(await load("#/events?group="));
  // The code of other screens is loaded three seconds after the first.
  await page.waitForTimeout(6000);
  if (given.profile !== undefined) {
    mkdirSync(given.profile, { recursive: true });
    await browser.startTracing(page, { path: join(given.profile, `console-${round}.json`), categories: traced });
  }
  for (const [name, step] of Object.entries(steps)) {
    const before = await interactions();
    await step(page);
    await page.waitForTimeout(500);
    const after = await interactions();
    const own = after.known.slice(before.known.length);
    const short = Math.max(0, after.count - before.count - own.length);
    byStep.get(name)?.push(...own, ...Array.from({ length: short }, () => tooShort));
  }
  if (given.profile !== undefined) await browser.stopTracing();
  // A grouping chosen in this round must not open the next one.
  await page.evaluate("localStorage.removeItem('belfry.grouping')");
}
await browser.close();

const ms = (value: number) => (value < reportedMs ? `<${reportedMs}` : value.toFixed(0));
const line = (name: string, all: readonly Interaction[]) => {
  const worst = all.reduce((most, each) => (each.durationMs > most.durationMs ? each : most), tooShort);
  const p50 = quantileOf(
    all.map(({ durationMs }) => durationMs),
    0.5,
  );
  const parts = [worst.delayMs, worst.handlersMs, worst.paintMs].map((part) => part.toFixed(0));
  return [name, String(all.length), ms(p50), ms(worst.durationMs), ...parts, worst.event];
};
const head = ["", "interactions", "p50 ms", "worst ms", "of it delay", "handlers", "to the paint", "event"];
console.log(
  table(head, [...[...byStep].map(([name, all]) => line(name, all)), line("all", [...byStep.values()].flat())]),
);
for (const [name, all] of Object.entries(loadsMs))
  console.log(
    `${name}, from a load without a cache to its rows: ${quantileOf(all, 0.5).toFixed(0)} ms (${Math.min(...all).toFixed(0)}–${Math.max(...all).toFixed(0)})`,
  );
process.exit(0);
