import type { Page } from "playwright-core";
import { expect } from "vitest";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole } from "./console-page.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { onPage } = testBrowser();
const rounds = 20;

/** Sends an event from the page, by its session; answers when it was stored. */
const send = (page: Page, name: string) =>
  page.evaluate(async (name) => {
    const dimensions = { source: name };
    const event = { name, timestamp: Date.now(), dimensions, severity: "SEVERITY_ERROR", status: "STATUS_OPEN" };
    const { localStorage } = globalThis as unknown as { localStorage: { getItem(name: string): string | null } };
    const proof = localStorage.getItem("belfry.session-proof");
    const answer = await fetch("/v1/data-receiver/events", {
      method: "POST",
      headers: { "content-type": "application/json", "service-session-proof": proof ?? "" },
      body: JSON.stringify({ events: [event] }),
    });
    const storedMs = Date.now();
    return { storedMs, succeeded: Number(((await answer.json()) as { succeeded: number }).succeeded) };
  }, name);

/** When a row of this name came into sight. */
const seen = (page: Page, name: string) =>
  page.evaluate(
    `new Promise((resolve) => {
      const look = () => document.querySelector("main").textContent.includes("${name};") && resolve(Date.now());
      new MutationObserver(look).observe(document.querySelector("main"), { childList: true, characterData: true, subtree: true });
      look();
    })`,
  ) as Promise<number>;

onPage("what one page sends comes into sight in another one; how soon is printed", async (page) => {
  const tenant = await testTenant(server.database.sql);
  await openConsole(page, server, tenant);
  await page.getByText("Live", { exact: true }).waitFor();
  const other = await page.context().newPage();
  await other.goto(`${server.url}/console/`);
  await other.getByText("Nothing is open.").waitFor();
  const lateMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const sight = seen(other, `round ${round}`);
    const { storedMs, succeeded } = await send(page, `round ${round};`);
    expect(succeeded).toBe(1);
    lateMs.push((await sight) - storedMs);
    // At no fixed place in the half second in which a page asks once.
    await page.waitForTimeout(600 + round * 37);
  }
  lateMs.sort((a, b) => a - b);
  console.log(`in sight after being stored, of ${rounds}: p50 ${lateMs[rounds / 2]} ms, last ${lateMs.at(-1)} ms`);
});
