import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { emptyDatabase, temporaryDir } from "../support/database.ts";
import { program } from "../support/program.ts";
import { httpReceiver } from "../support/receivers.ts";
import { masterKeys } from "../support/server.ts";
import { runCommand } from "./commands.ts";
import { differences, keep } from "./kept.ts";
import { entryOf, serverProcess } from "./server-process.ts";
import { newTenantAt } from "./stage.ts";
import { firstRelease, holds, ownVersion, versionBefore } from "./versions.ts";

test("an answer that lacks or changes what an earlier one had differs; one that has more does not", () => {
  const before = { id: "a", list: [{ n: 1 }, { n: 2 }] };
  expect(differences(before, { ...before, labels: {} }, "x")).toEqual([]);
  expect(differences(before, { id: "b", list: [{ n: 1 }, {}] }, "x")).toEqual([
    'x.id was "a" and is "b"',
    "x.list.1.n was 2 and is undefined",
  ]);
  expect(differences(before, { id: "a", list: [{ n: 1 }] }, "x")).toEqual(["x.list had 2 items, not 1"]);
  expect(differences(before, null, "x")).toEqual(["x is null"]);
});

/* `npm run faults -- --scene upgrade --before <commit>` does the same under load, with two servers. */
describe.skipIf(!holds(firstRelease))("what 0.1.0 has stored and told, in a clone that holds its commit", async () => {
  const old = versionBefore(firstRelease);
  const receiver = await httpReceiver();
  afterAll(async () => {
    old.remove();
    await receiver[Symbol.asyncDispose]();
  });
  const settings = { BELFRY_MASTER_KEYS: masterKeys, BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" };
  const started = async (url: string, tree: string) => {
    const server = await serverProcess({ ...settings, BELFRY_DATA_DIR: temporaryDir(), DATABASE_URL: url });
    await server.start({}, { tree });
    return server;
  };

  test("is the same after the upgrade, after the way back, and in an import", async () => {
    const { url } = await emptyDatabase();
    const server = await started(url, old.tree);
    const { manager } = await newTenantAt(url, "kept");
    const kept = await keep(server.url, manager, receiver.url);
    expect(await kept.compare(server.url), "0.1.0 itself").toEqual([]);
    const file = join(temporaryDir(), "export");
    await runCommand(entryOf(old.tree) as string, url, ["export", file], { env: settings });

    for (const version of [ownVersion(), old]) {
      await server.stop();
      await server.start({}, { tree: version.tree });
      expect(await kept.compare(server.url), version.version).toEqual([]);
    }
    await server.stop();
    expect(server.complaints).toEqual([]);

    const elsewhere = await emptyDatabase();
    await runCommand(await program(), elsewhere.url, ["import", file], { env: settings });
    const imported = await started(elsewhere.url, ownVersion().tree);
    expect(await kept.compare(imported.url), "an import").toEqual([]);
    await imported.stop();
  });
});
