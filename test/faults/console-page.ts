import { setTimeout as sleep } from "node:timers/promises";
import { launchBrowser } from "../support/browser.ts";
import type { Part } from "./beside.ts";
import { post } from "./notifications.ts";
import { clear, place } from "./place.ts";
import type { Random } from "./random.ts";
import type { Tenant } from "./stage.ts";

const eventCount = 20;
const settledMs = 60_000;
const viewport = { width: 1400, height: 1600 };
const nameOf = (n: number) => `job ${String(n).padStart(2, "0")}`;

/**
 * The console in a Chromium, logged in all the time and never loaded again, while events of its tenant open and close: in the end its list is what is
 * open, with what was reported last. Undefined where no Chromium runs.
 */
export async function consolePage(
  stack: AsyncDisposableStack,
  urls: readonly string[],
  { manager, agent }: Tenant,
  { int, chance }: Random,
): Promise<Part | undefined> {
  const dir = await place();
  stack.defer(() => clear(dir));
  const { browser, missing } = await launchBrowser([], dir);
  if (browser === undefined) {
    console.warn(`NOT TESTED: ${missing}`);
    return undefined;
  }
  stack.defer(() => browser.close());
  const page = await browser.newPage({ viewport });
  page.setDefaultTimeout(settledMs);
  const mistakes: string[] = [];
  page.on("pageerror", (error) => mistakes.push(`the console's page: ${error.message}`));
  await page.goto(`${urls[0]}/console/#/events?group=`); // a list: the first screen is grouped
  await page.getByLabel("API key").fill(manager["service-api-key"] as string);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("Nothing is open.").waitFor();

  /** What is open, by name, with what was reported of it last. */
  const open = new Map<string, string>();
  let lastMs = Date.now();

  /** The same as the page shows it. */
  async function shown(): Promise<Map<string, string>> {
    const rows = await page.getByRole("row").allInnerTexts();
    return new Map(
      rows.flatMap((text) => {
        const name = /\bjob \d\d\b/.exec(text)?.[0];
        return name === undefined ? [] : [[name, /\bturn \d+\b/.exec(text)?.[0] ?? text] as const];
      }),
    );
  }
  const sorted = (all: Map<string, string>) => JSON.stringify([...all].sort());

  return {
    beside: {
      name: "reports to the console's page",
      restMs: 1000,
      async turn(n) {
        const name = nameOf(int(0, eventCount - 1));
        const closed = chance(0.4);
        // An event's reports come in the order of their times.
        lastMs = Math.max(Date.now(), lastMs + 1);
        const event = {
          name,
          summary: `turn ${n}`,
          timestamp: `${lastMs}`,
          dimensions: { source: "page" },
          severity: "SEVERITY_ERROR",
          status: closed ? "STATUS_CLOSED" : "STATUS_OPEN",
        };
        await post(n % 2 === 0 ? urls : urls.toReversed(), agent, "data-receiver/events", { events: [event] });
        if (closed) open.delete(name);
        else open.set(name, `turn ${n}`);
      },
    },
    progress: () => `the console's page: ${open.size} events are open`,
    async compare() {
      const endMs = performance.now() + settledMs;
      let is = await shown();
      while (sorted(is) !== sorted(open) && performance.now() < endMs) {
        await sleep(200);
        is = await shown();
      }
      if (sorted(is) === sorted(open)) return mistakes;
      const text = (await page.locator("body").textContent())?.slice(0, 500);
      return [...mistakes, `the console shows ${sorted(is)}, and open is ${sorted(open)}; its page says: ${text}`];
    },
  };
}
