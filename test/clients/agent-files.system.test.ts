import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { PutMetricsRequestSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { openBuffer } from "../../examples/host-agent/buffer.ts";
import { ownKey } from "../../examples/host-agent/key.ts";
import { readSettings } from "../../examples/host-agent/settings.ts";
import { thresholds } from "../../examples/host-agent/thresholds.ts";
import { temporaryDir } from "../support/database.ts";

const key = `bf_${"a".repeat(12)}_${"b".repeat(49)}`;
const secret = "the secret of another file\n";
const asRoot = process.getuid?.() === 0;

function folders() {
  const dir = temporaryDir();
  const folder = join(dir, "agent");
  mkdirSync(folder, { mode: 0o700 });
  const other = join(dir, "other");
  writeFileSync(other, secret);
  return { dir, folder, other };
}

function open(folder: string) {
  const damaged: number[] = [];
  const buffer = openBuffer(
    folder,
    1024 * 1024,
    () => {},
    (bytes) => damaged.push(bytes),
  );
  const add = (value: number) => buffer.addPoints([{ metric: `m${value}`, value }]);
  function sendAll(): string[] {
    const names: string[] = [];
    for (let batch = buffer.next(1); batch !== undefined; batch = buffer.next(1)) {
      names.push(...fromBinary(PutMetricsRequestSchema, batch.bytes).metrics.map(({ metric }) => metric));
      batch.done();
    }
    return names;
  }
  return { buffer, add, sendAll, damaged };
}

describe("the agent's buffer", () => {
  test("follows no link in its folder, neither to read nor to write, and leaves what is not its own", () => {
    const { folder, other } = folders();
    for (const name of ["agent.pid", "points-1.log", "points-2.log", "events-1.log", "open-events.json.new"])
      symlinkSync(other, join(folder, name));
    mkdirSync(join(folder, "points-3.log"));
    execFileSync("mkfifo", [join(folder, "points-4.log")]);
    writeFileSync(join(folder, "points-99999999999999999999.log"), "");
    const { buffer, add, sendAll } = open(folder);
    for (let i = 0; i < 5; i += 1) add(i);
    const follow = thresholds("web-1", { filesystem: 1, memory: 1, load: 1 }, join(folder, "open-events.json"));
    follow.keep();
    expect(sendAll()).toEqual(["m0", "m1", "m2", "m3", "m4"]);
    buffer.close();
    expect(readFileSync(other, "utf8")).toBe(secret);
  });

  test("goes on with the next record or file, whatever something else has done to one", () => {
    const { folder } = folders();
    const first = open(folder);
    for (let i = 0; i < 3; i += 1) first.add(i);
    first.buffer.close();
    const file = join(folder, "points-1.log");
    appendFileSync(file, secret.repeat(10));
    truncateSync(file, 5 * 1024 ** 3); // zeros behind: read as a whole it would not fit into a Buffer
    const second = open(folder);
    for (let i = 3; i < 6; i += 1) second.add(i);
    truncateSync(join(folder, "points-2.log"), statSync(join(folder, "points-2.log")).size - 1);
    const sent = second.sendAll();
    expect(sent.filter((name) => !["m3", "m4"].includes(name))).toEqual([]);
    expect(sent.slice(-2)).toEqual(["m3", "m4"]);
    second.add(6);
    expect(second.sendAll()).toEqual(["m6"]);
    expect(second.buffer.bytes()).toBe(0);
    second.buffer.close();
  });

  test.each([
    [
      "that others can write to",
      (folder: string) => chmodSync(folder, 0o777),
      /other accounts can write to .*chmod 700/,
    ],
    ["of another account", (folder: string) => chownSync(folder, 65534, 65534), /belongs to another account/],
  ])("refuses a folder %s", (what, spoil, message) => {
    if (what.startsWith("of") && !asRoot) return;
    const { folder } = folders();
    spoil(folder);
    expect(() => open(folder)).toThrow(message);
  });

  test("with what is open no longer legible, nothing is open", () => {
    for (const text of ["{}", "[1]", '[["no JSON", 3]]', '[["[1,2]", 3]]', '[["[\\"n\\",{\\"a\\":1}]",3]]', "x"]) {
      const { folder } = folders();
      const file = join(folder, "open-events.json");
      writeFileSync(file, text);
      const follow = thresholds("web-1", { filesystem: 1, memory: 2, load: 9 }, file);
      const none = { disks: [], interfaces: [], filesystems: [] };
      const cpu = { count: 1, timeSec: {} };
      const reading = { timeMs: 1, uptimeSec: 1, cpu, memory: { limit: 1, available: 1 }, ...none };
      expect(follow.eventsOf(reading)).toEqual([]);
    }
  });
});

describe("the agent's key", () => {
  const none = () => expect.fail("nothing is sent");
  async function keyOf(dir: string, file: string) {
    const said: string[] = [];
    const settings = readSettings({ BELFRY_DATA_DIR: dir, AGENT_KEY_FILE: file });
    return { key: await ownKey(settings, none, (line) => said.push(line)), said };
  }

  test("is read from its file, with a word where others can read it, too", async () => {
    const { dir } = folders();
    const file = join(dir, "key");
    writeFileSync(file, `${key}\n`, { mode: 0o600 });
    expect(await keyOf(dir, file)).toEqual({ key, said: [] });
    chmodSync(file, 0o644);
    expect((await keyOf(dir, file)).said).toEqual([expect.stringMatching(/other accounts .* chmod 600 it$/)]);
  });

  test("of a file that holds something else nothing is sent", async () => {
    const { dir, other } = folders();
    await expect(keyOf(dir, other)).rejects.toThrow(/holds no key/);
    writeFileSync(join(dir, "admin.key"), secret);
    await expect(keyOf(dir, join(dir, "none"))).rejects.toThrow(/admin.key holds no key/);
  });

  test("that it makes is not written through a link", async () => {
    const { dir } = folders();
    const target = join(dir, "elsewhere");
    symlinkSync(target, join(dir, "agent.key"));
    writeFileSync(join(dir, "admin.key"), `${key}\n`, { mode: 0o600 });
    const settings = readSettings({ BELFRY_DATA_DIR: dir, AGENT_URL: "http://127.0.0.1:9" });
    const refuse = () => {
      throw new Error("not now");
    };
    await expect(ownKey(settings, refuse, () => {})).rejects.toThrow("not now");
    expect([target, join(dir, "agent.key")].map((path) => existsSync(path))).toEqual([false, false]);
  });
});
