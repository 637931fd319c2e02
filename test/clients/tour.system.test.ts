import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { clear, place } from "../faults/place.ts";
import { freePort } from "../faults/server-process.ts";
import { installed } from "../integrations/programs.ts";
import { answersOf, consoleSteps, script, shape } from "../support/console.ts";
import { temporaryDir } from "../support/database.ts";

const root = join(import.meta.dirname, "../..");
const tour = readFileSync(join(root, "docs/tour.md"), "utf8");
const [start, ...calls] = consoleSteps(tour);
const helper = /^```sh\n(.*?)^```/ms.exec(tour)?.[1] ?? "";

const dir = await place();
let said = "";
let server: ChildProcess | undefined;

beforeAll(async () => {
  server = spawn(process.execPath, ["start.js", "serve"], {
    cwd: root,
    env: { PATH: process.env.PATH, BELFRY_DATA_DIR: dir, BELFRY_PORT: "0", BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [server.stdout, server.stderr]) stream?.on("data", (text) => (said += text));
  while (!said.includes("The first manager key")) {
    if (server.exitCode !== null) throw new Error(`the server did not start: ${said}`);
    await sleep(50);
  }
});

afterAll(async () => {
  server?.kill("SIGTERM");
  if (server?.exitCode === null) await once(server, "exit");
  await clear(dir);
});

test("`npm start` says what the tour shows", () => {
  expect(start?.command).toBe("BELFRY_OUTBOUND_ALLOW=127.0.0.0/8 npm start");
  const { port } = new URL(/https:\S+/.exec(said)?.[0] ?? "");
  const printed = said
    .replaceAll(dir, ".belfry")
    .replaceAll(`:${port}`, ":8443")
    .replace(/^\{"level":30,.*\n/gm, "")
    // Only a terminal is shown the key itself.
    .replace(/manager key is in (\S+)/, "manager key, kept in $1: bf_");
  expect(printed).toMatch(shape(`${start?.answer}…`));
});

test("each command of the tour answers what it shows", async () => {
  const address = /https:\S+/.exec(said)?.[0] ?? "";
  const port = await freePort();
  const here = (text: string) =>
    text
      .replaceAll(".belfry/", `${dir}/`)
      .replaceAll("https://localhost:8443", address)
      .replaceAll("9944", String(port));
  const commands = calls.map(({ command }) => here(command));
  const { stdout, stderr } = await promisify(execFile)("bash", ["-c", script(here(helper), commands)], {
    cwd: root,
    timeout: 60_000,
    // What the agent finds by itself where the server has its usual place.
    env: { ...process.env, BELFRY_DATA_DIR: dir, AGENT_URL: address },
  });
  // What bash says of a job that was ended.
  expect(stderr.replace(/^\[1\].*(?:Terminated|Done).*\n/gm, "")).toBe("");
  const answers = answersOf(stdout);
  for (const [i, { command, answer }] of calls.entries()) {
    // An answer that ends in … is longer; one without a line is not shown.
    if (answer !== "") expect(answers[i]?.trim(), command).toMatch(shape(answer));
  }
});

test("each command of the tutorial answers what it shows, up to the alert in the webhook and its end", async () => {
  const page = readFileSync(join(root, "docs/tutorial.md"), "utf8");
  // Prometheus itself where it is installed, else what it sends.
  const leftOut = installed("prometheus") ? "Without Prometheus" : "Prometheus";
  const sections = page.split(/^(?=## )/m).filter((section) => !section.startsWith(`## ${leftOut}\n`));
  const steps = sections.flatMap(consoleSteps);
  const address = /https:\S+/.exec(said)?.[0] ?? "";
  const ports = [await freePort(), await freePort(), await freePort()];
  const here = (text: string) =>
    text
      .replaceAll(".belfry/", `${dir}/`)
      .replaceAll("https://localhost:8443", address)
      .replaceAll("localhost:8443", new URL(address).host)
      .replaceAll(/\b994([456])\b/g, (_, last) => `${ports[Number(last) - 4]}`);
  const folder = temporaryDir();
  const files = [...page.matchAll(/^Save this as \*\*([\w.]+)\*\*:\n\n```yaml\n(.*?)^```/gms)];
  expect(files.map(([, name]) => name)).toEqual(["prometheus.yml", "rules.yml"]);
  for (const [, name = "", text = ""] of files) writeFileSync(join(folder, name), here(text));
  const function_ = /^```sh\n(.*?)^```/ms.exec(page)?.[1] ?? "";
  expect(function_).toBe(helper);
  const commands = steps.map(({ command }) => here(command));
  const { stdout, stderr } = await promisify(execFile)("bash", ["-c", script(here(function_), commands)], {
    cwd: folder,
    timeout: 80_000,
  });
  expect(stderr.replaceAll(/^\[\d\].*\n/gm, "")).toBe("");
  const answers = answersOf(stdout);
  for (const [i, { command, answer }] of steps.entries()) {
    if (answer !== "") expect(answers[i]?.trim(), command).toMatch(shape(here(answer)));
  }
});
