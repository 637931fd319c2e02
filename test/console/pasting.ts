import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";

const { PATH, HOME } = process.env;

/** What a page needs of its browser, so that what it copies can be pasted. */
export const clipboard = { permissions: ["clipboard-read", "clipboard-write"] };

/** The lines of this name, as the button copies them. */
export async function copied(page: Page, title: string): Promise<string> {
  const lines = page.getByRole("figure", { name: title, exact: true });
  await lines.getByRole("button", { name: `Copy ${title}`, exact: true }).click();
  await lines.getByText("Copied.").waitFor();
  return await page.evaluate("navigator.clipboard.readText()");
}

/** Pastes lines into a shell in this folder. */
export async function paste(dir: string, lines: string): Promise<string> {
  const { stdout } = await promisify(execFile)("bash", ["-ec", lines], { cwd: dir, env: { PATH, HOME } });
  return stdout;
}

/** Pastes the last line of a shell: a program that goes on until the test ends. */
export function start(dir: string, line: string): void {
  const child = spawn("bash", ["-ec", `exec ${line.replace(/^(\w+=\S+ )+/, "env $&")}`], {
    cwd: dir,
    env: { PATH, HOME },
    detached: true,
    stdio: "ignore",
  });
  onTestFinished(() => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
  });
}

/** On the page Send data: makes a key, and puts it and the authority's certificate into this folder by the lines that are shown. */
export async function pasteFiles(page: Page, dir: string): Promise<void> {
  await page.getByRole("button", { name: "Make a key" }).click();
  await page.getByText("It is shown this once").waitFor();
  await paste(dir, await copied(page, "The key"));
  expect(await paste(dir, await copied(page, "The certificate"))).toBe("belfry-ca.pem: OK\n");
}
