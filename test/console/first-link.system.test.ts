import { execFile, spawn } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { clear, clusterPlace } from "../faults/place.ts";
import { launchBrowser } from "../support/browser.ts";

const root = join(import.meta.dirname, "../..");
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
