import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type Options, startFleet } from "../../src/processes/fleet.ts";
import { openLog } from "../../src/rpc/log.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { program } from "../support/program.ts";

const nothing = {} as Awaited<Options["assigned"]>;
const real = { args: ["serve"], execArgv: [], cwd: process.cwd(), silent: true };
const { url } = await testDatabase();
const { BELFRY_TEST_CLUSTER: tests } = process.env;

function fleetOf(assignment = nothing) {
  const fleet = startFleet({
    processes: 2,
    assigned: Promise.resolve(assignment),
    certificate: () => undefined,
    requestsFd: undefined,
    log: openLog("silent"),
  });
  onTestFinished(() => fleet.stop(5000));
  return fleet;
}

beforeAll(async () => cluster.setupPrimary({ exec: await program() }));
beforeEach(() => {
  cluster.setupPrimary(real);
  delete process.env.BELFRY_TEST_CLUSTER; // no setting of a server
});
afterEach(() => {
  if (tests !== undefined) process.env.BELFRY_TEST_CLUSTER = tests;
});

describe("a start says why there is none", () => {
  test.each([
    ["where the machine refuses a process later", { cwd: join(temporaryDir(), "none") }, /cannot be started: .*ENOENT/],
    ["where it refuses one at once", { args: ["\0"] }, /cannot be started: .*null bytes/],
  ])("%s", async (_, settings, why) => {
    cluster.setupPrimary({ ...real, ...settings });
    const fleet = fleetOf();
    await expect(fleet.started).rejects.toThrow(why);
    await fleet.stop(5000);
    expect(fleet.members()).toEqual([]);
  });

  test("where a process fails with what no one expects: it ends", async () => {
    let said = "";
    const listen = ({ process }: Worker) => void process.stderr?.on("data", (text) => (said += text));
    cluster.on("fork", listen);
    onTestFinished(() => void cluster.off("fork", listen));
    const fleet = fleetOf();
    await expect(fleet.started).rejects.toThrow("a serving process has ended (exit code 1) before it served");
    await expect.poll(() => said).toContain("belfry: TypeError");
  });
});

test("below another node:cluster, such as a process manager's, one process serves by itself", async () => {
  const env = { DATABASE_URL: url, BELFRY_PROCESSES: "2", BELFRY_PORT: "0", BELFRY_DATA_DIR: temporaryDir() };
  const worker = cluster.fork({ ...env, BELFRY_LOG_LEVEL: "silent" });
  onTestFinished(() => void worker.process.kill("SIGKILL"));
  const first = await Promise.race([once(worker, "listening"), once(worker, "exit")]);
  expect(first[0]).toMatchObject({ addressType: 4 });
  worker.process.kill("SIGTERM");
  expect(await once(worker, "exit")).toEqual([0, null]);
});
