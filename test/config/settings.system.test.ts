import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { SettingError } from "../../src/config/parsers.ts";
import { readConfig, settingsHelp } from "../../src/config/settings.ts";
import { didYouMean } from "../../src/transcoding/did-you-mean.ts";
import { compiled, program } from "../support/program.ts";

const testDir = join(import.meta.dirname, "..");
const names = settingsHelp()
  .split("\n")
  .map((line) => line.trim().split(" ", 1)[0] ?? "");

test("a setting that is empty is one that is not set: it listens on loopback, in the usual directory", () => {
  const empty = readConfig(Object.fromEntries(names.map((name) => [name, ""])));
  expect(empty).toEqual(readConfig({}));
  expect(empty).toMatchObject({ host: "localhost", port: 8443, plaintext: false });
});

test("everything that is wrong is named at once, without its value", () => {
  const wrong = {
    BELFRY_PORT: "65536",
    BELFRY_PLAINTEXT: "yes",
    BELFRY_TLS_CERT: "/a.pem",
    DATABASE_URL: "mysql://u:canary@host/db",
    BELFRY_CORS_ORIGINS: "app.example.com",
    BELFRY_PUBLIC_URL: "https://u:canary@belfry.example.com",
    BELFRY_OUTBOUND_ALLOW: "10.0.0.0/33",
    BELFRY_SMTP_URL: "http://u:canary@host",
    BELFRY_SMTP_SENDER: "Belfry",
    BELFRY_TEAM_CHAT_URL: "slack.com",
    BELFRY_PROT: "1",
  };
  expect(() => readConfig(wrong)).toThrow(SettingError);
  const { message } = (() => {
    try {
      return readConfig(wrong) as never;
    } catch (error) {
      return error as Error;
    }
  })();
  for (const name of Object.keys(wrong)) expect(message).toContain(name);
  expect(message).not.toContain("canary");
});

test("a name that is no setting is answered with the nearest one", () => {
  for (const [name, meant] of [
    ["BELFRY_PROT", "BELFRY_PORT"],
    ["BELFRY_LOGLEVEL", "BELFRY_LOG_LEVEL"],
    ["BELFRY_DATABASE_URL", "DATABASE_URL"],
  ] as const) {
    const rule = `${name} is no setting of this version; did you mean "${meant}"?`;
    expect(() => readConfig({ [name]: "1" }, didYouMean)).toThrow(new SettingError(rule));
  }
});

test("a duration has a unit; without one, or out of bounds, it is refused with the form that is right", () => {
  expect(readConfig({ BELFRY_METRIC_RETENTION: "2d" }).metricRetentionSec).toBe(2 * 86_400);
  expect(readConfig({ BELFRY_OUTBOUND_TIMEOUT: "500ms" }).outboundTimeoutMs).toBe(500);
  expect(readConfig({ BELFRY_AUDIT_RETENTION: "90d" }).auditRetentionSec).toBe(90 * 86_400);
  for (const bare of ["34560000", "400 d", "1e3s", "5y", "-1d", "1h", "forever"]) {
    expect(() => readConfig({ BELFRY_METRIC_RETENTION: bare })).toThrow(
      new SettingError("BELFRY_METRIC_RETENTION must be a duration with its unit (ms, s, m, h or d) from 1d to 36500d"),
    );
  }
  expect(() => readConfig({ BELFRY_AUDIT_RETENTION: "0" })).toThrow(/, or forever$/);
});

test("a test beside this folder sets each setting", () => {
  const tests = globSync("**/*.ts", { cwd: testDir })
    .filter((path) => !path.startsWith("config/settings"))
    .map((path) => readFileSync(join(testDir, path), "utf8"))
    .join("\n");
  expect(names.filter((name) => !tests.includes(`${name}:`) && !tests.includes(`${name}=`))).toEqual([]);
});

test.each(["alerts@example.com", "Belfry <alerts@example.com>", "Warnung Süd <a@b>"])("%s is a sender", (sender) => {
  const { smtpSender } = readConfig({ BELFRY_SMTP_URL: "smtps://u:p@relay.example.com", BELFRY_SMTP_SENDER: sender });
  expect(smtpSender).toBe(sender);
});

test("a relay without a sender, and a sender without a relay, are refused", () => {
  expect(() => readConfig({ BELFRY_SMTP_URL: "smtp://relay" })).toThrow(/must be set together/);
  expect(() => readConfig({ BELFRY_SMTP_SENDER: "a@b" })).toThrow(/must be set together/);
});

test("--help prints every setting, --version the version, and a wrong setting ends the start with one line", async () => {
  const main = await program();
  const run = (args: string[], env = {}) =>
    promisify(execFile)(process.execPath, [main, ...args], {
      cwd: `${import.meta.dirname}/../..`,
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compiled, ...env },
    });
  const [all, named, one] = await Promise.all(
    [["--help"], ["--version"], ["keys", "create", "--help"]].map((args) => run(args)),
  );
  for (const name of names) expect(all?.stdout).toContain(`  ${name} `);
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  expect(named).toMatchObject({ stdout: `belfry ${version}\n`, stderr: "" });
  expect(one?.stdout).toMatch(
    /^ {2}npm run belfry -- keys create <tenant> <client id> .*\n +make a key, shown once\n$/,
  );
  const failed = await run(["serve"], { BELFRY_PORT: "x" }).catch((error) => error);
  expect(failed).toMatchObject({ code: 1, stderr: "belfry: BELFRY_PORT must be a whole number from 0 to 65535\n" });
});
