import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { connectOnce, type Sql } from "../../src/db/connect.ts";
import { startFormats } from "../../src/db/formats.ts";
import { checkMigrated, migrationsDir, SchemaTooNew } from "../../src/db/migrate.ts";
import { formatsNumber, sessionName } from "../../src/db/session-name.ts";
import { startEmbedded } from "../../src/embedded/embedded.ts";
import { leadership } from "../../src/jobs/leader.ts";
import { onCitus } from "../support/citus.ts";
import { clusterDir, testDatabase } from "../support/database.ts";

const lookMs = 20;

interface Used {
  /** How long ago a server of before was there. */
  seen: string;
  leader?: string | null;
}

/** What servers of before leave in a database that they have used. */
async function leaveTraces(sql: Sql, { seen, leader = `${formatsNumber} here` }: Used) {
  await sql`
    update migrations set oldest_server = '0.1.0', applied_at = now() - ${seen}::text::interval
    where name = '0026_closed-by'`;
  await sql`
    insert into leases (name, holder, until_ms) select 'jobs.report', ${leader}, 0 where ${leader}::text is not null`;
}

async function usedBefore(used: Used) {
  const database = await testDatabase();
  await leaveTraces(database.sql, used);
  return database;
}

/** Moves the moment at which a server of before was seen last. */
const wasSeen = (sql: Sql, ago: string) =>
  sql`update migrations set applied_at = now() - ${ago}::text::interval where name = '0026_closed-by'`;

async function start(sql: Sql) {
  const said: string[] = [];
  const formats = await startFormats(sql, { info: (_, text) => void said.push(text) }, lookMs);
  onTestFinished(() => formats.stop());
  const refusal = async () => {
    const error = await formats.begin("what is new").catch((error: unknown) => error);
    return error === undefined ? undefined : { ...(error as { code: number }), message: (error as Error).message };
  };
  return { ...formats, said, refusal };
}

/** A raw connection of this name, until it is closed. */
async function connected(url: string, name: string) {
  const { sql, close } = connectOnce(url, name);
  onTestFinished(close);
  await sql`select 1`;
  return close;
}

/** Where a server of before would begin to look, which does not know the last migration. */
function startOfBefore(url: string) {
  const dir = mkdtempSync(join(tmpdir(), "belfry-migrations-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  cpSync(migrationsDir, dir, { recursive: true });
  const file = join(dir, "meta/_journal.json");
  const journal = JSON.parse(readFileSync(file, "utf8")) as { entries: { tag: string }[] };
  const at = journal.entries.findIndex(({ tag }) => tag === "0026_closed-by");
  writeFileSync(file, JSON.stringify({ ...journal, entries: journal.entries.slice(0, at) }));
  return checkMigrated(url, { dir, version: "0.3.1" });
}

test("a new database begins with the new forms, and servers of before cannot start on it", async () => {
  const { sql, url } = await testDatabase();
  const { begun, refusal, said } = await start(sql);
  expect([begun(), await refusal(), said]).toEqual([true, undefined, []]);
  await expect(startOfBefore(url)).rejects.toBeInstanceOf(SchemaTooNew);
  await expect(startOfBefore(url)).rejects.toThrow(
    "the database is newer than this server, Belfry 0.3.1: its migration 0026_closed-by needs Belfry 0.4.0 or a newer one; start that",
  );
});

describe("what only a new feature stores", () => {
  test("is refused while a server of before is connected, and for a minute afterwards", async () => {
    const { sql, url } = await usedBefore({ seen: "5 minutes" });
    const close = await connected(url, "belfry sending");
    const { begun, refusal, said } = await start(sql);
    const refused = {
      code: 9,
      message:
        "[failed_precondition] what is new cannot be read by a server before 0.4.0, and one has used this database within the last minute; when all are stopped, wait for a minute and send again",
    };
    expect(await refusal()).toMatchObject(refused);
    await close();
    const left = () => sql`
      select from pg_stat_activity where application_name = 'belfry sending' and datname = current_database()`;
    await expect.poll(async () => (await left()).count).toBe(0);
    expect(await refusal()).toMatchObject(refused);
    await wasSeen(sql, "59 s");
    expect(await refusal()).toMatchObject(refused);
    expect(begun()).toBe(false);
    await startOfBefore(url);
    await wasSeen(sql, "1 minute");
    expect([await refusal(), begun()]).toEqual([undefined, true]);
    await expect(startOfBefore(url)).rejects.toBeInstanceOf(SchemaTooNew);
    expect(said).toEqual(["older servers can no longer use the database"]);
  });

  test("is refused where one has come since this process looked last", async () => {
    const { sql, url } = await usedBefore({ seen: "5 minutes" });
    const { refusal } = await start(sql);
    await connected(url, "belfry");
    expect(await refusal()).toMatchObject({ code: 9 });
  });

  test("begins beside servers of this version, programs of other names, and servers of before on another database", async () => {
    const { sql, url } = await usedBefore({ seen: "5 minutes" });
    const other = await testDatabase();
    await connected(other.url, "belfry sending");
    for (const name of [sessionName("sending"), "psql", "citus_internal gpid=1"]) await connected(url, name);
    const { refusal } = await start(sql);
    expect(await refusal()).toBe(undefined);
  });
});

test.skipIf(onCitus)("servers of before are seen whatever role they connect with", async () => {
  const log = { info() {}, warn: console.warn, error: console.error };
  const { url, adminUrl, stop } = await startEmbedded({
    dataDir: clusterDir(),
    log,
    durable: false,
    connectionsMax: 20,
  });
  onTestFinished(() => stop("immediate"));
  const { sql, close } = connectOnce(url, sessionName());
  onTestFinished(close);
  await leaveTraces(sql, { seen: "5 minutes" });
  await connected(Object.assign(new URL(adminUrl), { pathname: new URL(url).pathname }).href, "belfry sending");
  expect(await (await start(sql)).refusal()).toMatchObject({ code: 9 });
});

describe("new forms of what is stored anyway", () => {
  test("begin a day after a server of before was there last, with the next look", async () => {
    const { sql, url } = await usedBefore({ seen: "23 hours 59 minutes" });
    const { begun, said } = await start(sql);
    expect(begun()).toBe(false);
    await startOfBefore(url);
    await wasSeen(sql, "24 hours");
    await expect.poll(begun).toBe(true);
    await expect(startOfBefore(url)).rejects.toBeInstanceOf(SchemaTooNew);
    expect(said).toHaveLength(1);
  });

  test("wait for another day when one comes back", async () => {
    const { sql, url } = await usedBefore({ seen: "23 hours" });
    await connected(url, "belfry listener");
    const { begun } = await start(sql);
    const [row] = await sql<{ quiet: boolean }[]>`
      select applied_at < now() - interval '1 hour' as quiet from migrations where name = '0026_closed-by'`;
    expect([row?.quiet, begun()]).toEqual([false, false]);
  });

  test("begin in all processes when one of them begins", async () => {
    const { sql } = await usedBefore({ seen: "5 minutes" });
    const [one, two] = [await start(sql), await start(sql)];
    expect([await one.refusal(), one.begun()]).toEqual([undefined, true]);
    await expect.poll(two.begun).toBe(true);
    expect([...one.said, ...two.said]).toHaveLength(1);
  });
});

describe("a server of before that ran while none of this version did", () => {
  test.each([
    ["has stopped in order, and left nothing", null],
    ["was killed, and is still named as the leader", "1a2b3c4d-0000-4000-8000-000000000000"],
    ["reads older formats", "1 1a2b3c4d-0000-4000-8000-000000000000"],
  ])("counts as seen when it %s", async (_, leader) => {
    const { sql } = await usedBefore({ seen: "7 days", leader });
    const { begun, refusal } = await start(sql);
    expect(begun()).toBe(false);
    expect(await refusal()).toMatchObject({ code: 9 });
  });

  test("is told from one of this version that has stopped: a restart keeps the day", async () => {
    const { sql } = await usedBefore({ seen: "23 hours", leader: null });
    const lead = leadership(sql, "jobs.report");
    await expect.poll(lead.held).toBe(true);
    await lead.stop();
    const { begun } = await start(sql);
    await wasSeen(sql, "24 hours");
    await expect.poll(begun).toBe(true);
  });
});
