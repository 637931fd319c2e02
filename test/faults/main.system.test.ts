import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryDir } from "../support/database.ts";

const runningIn = (dir: string) =>
  execFileSync("ps", ["-ww", "-eo", "pid=,command="], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(dir));

test("a run of faults that SIGTERM ends leaves no server, no PostgreSQL and no folder", async () => {
  const dir = temporaryDir();
  const child = spawn(process.execPath, [join(import.meta.dirname, "main.ts"), "--scene", "kills"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, TMPDIR: dir, TEST_DATABASE_URL: "" },
  });
  let said = "";
  child.stdout.on("data", (text) => (said += text));
  // Servers and PostgreSQL run, and have been killed before.
  await expect.poll(() => said, { timeout: 150_000 }).toContain("round 1");
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([143, null]);
  expect(readdirSync(dir)).toEqual([]);
  // A process that is killed is gone a moment later.
  await expect.poll(() => runningIn(dir)).toEqual([]);
});
