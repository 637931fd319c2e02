import chromium from "@sparticuz/chromium";
import { type Browser, type BrowserContextOptions, type Page, chromium as playwright } from "playwright-core";
import { afterAll, beforeAll, test } from "vitest";
import { temporaryDir } from "./database.ts";
import { ungrouped } from "./ungrouped.ts";

/** A script of the pages of the console; those of `about:` and `data:` have no storage. */
const storeUngrouped = `{
  const [key, text] = ${JSON.stringify(ungrouped)};
  if (location.pathname.startsWith("/console/")) localStorage.getItem(key) ?? localStorage.setItem(key, text);
}`;

/** A Chromium of these switches, or why none runs here. */
export async function launchBrowser(
  switches: readonly string[] = [],
  // It unpacks Chromium; the folder goes with the run, so that no other run sees half of it.
  dir = temporaryDir(),
): Promise<{ browser?: Browser; missing: string }> {
  const { TMPDIR } = process.env;
  process.env.TMPDIR = dir;
  chromium.setGraphicsMode = false;
  try {
    const executablePath = await chromium.executablePath();
    return { browser: await playwright.launch({ executablePath, args: ["--no-sandbox", ...switches] }), missing: "" };
  } catch (error) {
    return { missing: `Chromium does not run here: ${String(error).split("\n", 1)[0]}` };
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  }
}

type Body = (page: Page) => Promise<void>;

/** Ends what hangs, also on a machine that is busy with something else. */
const pageMsMax = 120_000;

/**
 * A Chromium for the tests of a file. `onPage` defines a test on a new page; it is passed over, and says why, where there is
 * no Chromium.
 */
export function testBrowser() {
  let browser: Browser | undefined;
  let missing = "";

  beforeAll(async () => {
    const launched = await launchBrowser();
    browser = launched.browser;
    missing = launched.missing;
  }, 120_000);
  afterAll(() => browser?.close());

  return {
    onPage(name: string, ...given: [Body] | [BrowserContextOptions, Body]) {
      const [options, body] = given.length === 1 ? [{}, given[0]] : given;
      test(name, async ({ skip }) => {
        if (browser === undefined) return skip(missing);
        // The certificate is of a local CA; CORS is judged as everywhere.
        const context = await browser.newContext({ ignoreHTTPSErrors: true, ...options });
        await context.addInitScript(storeUngrouped);
        try {
          const page = await context.newPage();
          page.setDefaultTimeout(pageMsMax);
          await body(page);
        } finally {
          await context.close();
        }
      });
    },
  };
}
