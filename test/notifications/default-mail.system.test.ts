import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { testBrowser } from "../support/browser.ts";
import { mailParts } from "../support/mail-parts.ts";
import { type MailReceiver, mailReceiver } from "../support/receivers.ts";
import { samples } from "./disk-alerts.ts";
import { destinations, type Site, site } from "./kinds.ts";
import { nastyTexts } from "./nasty-texts.ts";

const { onPage } = testBrowser();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Where `npm run screenshots` wants the picture; else none is made. */
const imagesDir = process.env.SCREENSHOTS;

let relay: MailReceiver;
let place: Site;
beforeAll(async () => {
  relay = await mailReceiver();
  const url = `smtp://127.0.0.1:${relay.port}?ignoreTLS=true`;
  place = await site({ env: { BELFRY_SMTP_URL: url, BELFRY_SMTP_SENDER: "belfry@example.com" } });
});
afterAll(async () => {
  await place[Symbol.asyncDispose]();
  await relay[Symbol.asyncDispose]();
});

const [[, alert]] = samples as [(typeof samples)[0]];
const wide = "x".repeat(400);
const long = {
  ...alert,
  event: alert.event && {
    ...alert.event,
    summary: wide,
    body: `${wide}\n${nastyTexts.emoji}`,
    metadata: { [wide]: wide },
  },
};

describe.each([
  ["on a desk", { width: 648, height: 300 }],
  ["on a phone", { width: 390, height: 700 }],
])("the default mail %s", (_where, viewport) => {
  for (const [title, notification] of [...samples, ["Long words", long] as const])
    onPage(`${title} is readable, and nothing of it is beyond the edge`, { viewport }, async (page) => {
      relay.mails.length = 0;
      await place.send(destinations.email(""), { notification });
      const [, html = ""] = mailParts(relay.mails[0]?.raw ?? "").parts;
      await page.setContent(html);
      if (imagesDir && notification === alert && viewport.width === 648)
        await page.screenshot({ path: `${imagesDir}/email.png`, fullPage: true });
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(viewport.width);
      expect(
        await page.evaluate(
          "[...document.querySelectorAll('td,div')].filter((e) => e.scrollWidth > e.clientWidth + 1).length",
        ),
      ).toBe(0);
      await page.evaluate(axe);
      const violations = await page.evaluate(
        async (options) => {
          // biome-ignore lint/suspicious/noExplicitAny: axe, which was put into the page
          const found = await (globalThis as any).axe.run(options);
          return found.violations.map(({ id }: { id: string }) => id);
        },
        { runOnly: ["color-contrast", "link-name", "link-in-text-block"] },
      );
      expect(violations).toEqual([]);
    });
});
