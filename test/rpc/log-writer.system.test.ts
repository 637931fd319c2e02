import { execFileSync, spawn } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { logWriter } from "../../src/rpc/log-writer.ts";
import { temporaryDir } from "../support/database.ts";

/** A pipe that no one reads yet; `read` takes what is in it. */
function pipe() {
  const path = join(temporaryDir(), "pipe");
  execFileSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const fd = openSync(path, constants.O_WRONLY);
  onTestFinished(() => {
    closeSync(reader);
    closeSync(fd);
  });
  function read(): string {
    const piece = Buffer.alloc(1024 * 1024);
    try {
      return piece.toString("utf8", 0, readSync(reader, piece));
    } catch {
      return ""; // nothing there
    }
  }
  return { fd, read };
}

const flushed = (writer: ReturnType<typeof logWriter>) => new Promise<void>((resolve) => writer.flush(() => resolve()));

test("lines arrive whole and in their order, also through a pipe that takes a few bytes at a time", async () => {
  const { fd, read } = pipe();
  const writer = logWriter(fd);
  const lines = Array.from({ length: 5000 }, (_, i) => `${i} ${"x".repeat(i % 200)}\n`);
  for (const line of lines) writer.write(line);
  let text = "";
  await expect
    .poll(() => {
      text += read();
      return text.length;
    })
    .toBe(lines.join("").length);
  expect(text).toBe(lines.join(""));
  expect(writer.lost).toBe(0);
});

test("while no one reads no call waits, memory is bounded, and one line says how many lines were lost", async () => {
  const { fd, read } = pipe();
  const waitingMax = 100_000;
  const writer = logWriter(fd, { waitingMax, flushMsMax: 200 });
  const line = `${"x".repeat(99)}\n`;
  // A call that waited would wait for ever.
  for (let i = 0; i < 20; i += 1) {
    for (let n = 0; n < 1000; n += 1) writer.write(line);
    await sleep(10);
  }
  const { lost } = writer;
  // What is in the pipe, what is being written, and what waits.
  expect(20_000 - lost).toBeLessThan((65_536 + 2 * waitingMax) / line.length + 1);
  await flushed(writer);

  let text = "";
  await expect
    .poll(
      () => {
        text += read();
        return text;
      },
      { timeout: 10_000 },
    )
    .toContain("log lines were lost");
  const read20 = text.trimEnd().split("\n");
  expect(JSON.parse(read20.pop() ?? "")).toMatchObject({ level: 40, lost });
  expect(read20.length).toBe(20_000 - lost);
  writer.write("again\n");
  await expect.poll(read).toBe("again\n");
});

test("on a full disk lines are counted", async () => {
  const fd = openSync("/dev/full", "w");
  onTestFinished(() => closeSync(fd));
  const writer = logWriter(fd, { waitingMax: 10, flushMsMax: 100 });
  for (let i = 0; i < 30; i += 1) writer.write("12345\n");
  await flushed(writer);
  expect(writer.lost).toBe(29);
});

test("a process whose log no one reads ends all the same", async () => {
  const script = `
    const { logWriter } = await import(${JSON.stringify(join(import.meta.dirname, "../../src/rpc/log-writer.ts"))});
    const writer = logWriter(1);
    for (let n = 0; n < 10_000; n += 1) writer.write("x".repeat(99) + "\\n");
    setTimeout(() => writer.flush(() => process.exit(7)), 300);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  expect(await new Promise((resolve) => child.once("exit", resolve))).toBe(7);
});
