import { spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { exportTo } from "../../src/backup/export.ts";
import { tablesToCopy } from "../../src/backup/tables.ts";
import { transferCommand } from "../../src/cli/transfer.ts";
import { readConfig } from "../../src/config/settings.ts";
import { keyring } from "../../src/credentials/keyring.ts";
import { openSecrets } from "../../src/credentials/secrets.ts";
import { connectOnce, type Sql } from "../../src/db/connect.ts";
import { appliedMigrations, checkMigrated, migrate } from "../../src/db/migrate.ts";
import { sessionName } from "../../src/db/session-name.ts";
import { StartError } from "../../src/db/start-error.ts";
import { entityId, eventIds } from "../../src/entities/identity.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { version } from "../../src/version.ts";
import { mergeAll } from "../metrics/points.ts";
import { allMethods, callName, callRpc, newWorld, readCalls, type World } from "../support/calls.ts";
import { emptyDatabase, temporaryDir, testDatabase } from "../support/database.ts";
import { program } from "../support/program.ts";
import { masterKeys, testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const dir = temporaryDir();
const server = await testServer({});
const { sql } = server.database;

const settings = (env: Record<string, string> = {}) =>
  readConfig({
    BELFRY_DATA_DIR: dir,
    BELFRY_PORT: "0",
    BELFRY_PLAINTEXT: "1",
    BELFRY_SHUTDOWN_TIMEOUT: "500ms",
    BELFRY_MASTER_KEYS: masterKeys,
    ...env,
  });

/** Runs `belfry import`, with the master keys of the server unless others are given. */
async function imported(url: string, file: string, env: Record<string, string> = {}): Promise<string> {
  const command = transferCommand(["import", file], settings({ DATABASE_URL: url, ...env }));
  return await (command ?? expect.fail("no command"))(url);
}

/** Every row of every table but the list of migrations, as a digest of its text. */
async function contents(db: Sql): Promise<Record<string, string>> {
  const tables = await tablesToCopy(db);
  const found: Record<string, string> = {};
  for (const { table } of tables) {
    const [row] = await db.unsafe<{ count: bigint; digest: string }[]>(
      `select count(*) as count, md5(coalesce(string_agg(t::text, e'\\n' order by t::text collate "C"), '')) as digest from "${table}" t`,
    );
    found[table] = `${row?.count} rows, ${row?.digest}`;
  }
  return found;
}

const odd = `'tab\t, newline\n, \\N, \\. and "quotes"'`;
const samples: Record<string, string> = {
  uuid: "gen_random_uuid()",
  text: odd,
  "text[]": `array[${odd}, 'NULL', '']`,
  bytea: "decode('00ff5c2e0a', 'hex')",
  jsonb: `jsonb_build_object('a', ${odd}, 'b', 1.50)`,
  json: `json_build_object('a', ${odd}, 'b', 1.50)`,
  bigint: "9223372036854775807",
  integer: "-1",
  smallint: "3",
  boolean: "true",
  "double precision": "'-0'",
};

/** Gives a row to each table that has none: work that is under way only for moments. */
async function fillRest(db: Sql) {
  const columns = await db<{ table: string; column: string; type: string; parent: string | null; of: string | null }[]>`
    select c.relname::text as table, a.attname::text as column, format_type(a.atttypid, null) as type,
      k.confrelid::regclass::text as parent,
      (select p.attname::text from pg_attribute p where p.attrelid = k.confrelid
        and p.attnum = k.confkey[array_position(k.conkey, a.attnum)]) as of
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and a.attgenerated = ''
      left join pg_constraint k on k.conrelid = c.oid and k.contype = 'f' and a.attnum = any(k.conkey)
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`;
  const all = await contents(db);
  for (const table of Object.keys(all).filter((each) => all[each]?.startsWith("0 rows"))) {
    const own = columns.filter((each) => each.table === table);
    const parent = own.find((each) => each.parent !== null)?.parent;
    const values = own.map(({ type, of }) => (of === null ? samples[type] : `p."${of}"`));
    await db.unsafe(
      `insert into "${table}" (${own.map(({ column }) => `"${column}"`)}) select ${values} ${parent ? `from "${parent}" p limit 1` : ""}`,
    );
  }
}

/** What is empty in most rows is there in some. */
async function checkFilled(db: Sql) {
  const [filled] = await db`
    select exists (select from series where labels is not null) as series,
      exists (select from series_labels) as labels,
      exists (select from events where dedup_key is not null) as keys,
      exists (select from occurrences where expires_ms is not null) as expiry,
      exists (select from rule_matches where metric_labels is not null) as matches`;
  expect(filled).toEqual({ series: true, labels: true, keys: true, expiry: true, matches: true });
}

async function on<T>(url: string, work: (db: Sql) => Promise<T>): Promise<T> {
  const { sql: db, close } = connectOnce(url, "belfry test");
  try {
    return await work(db);
  } finally {
    await close();
  }
}

// Data of every part: each RPC once, for a tenant of its own, and points that are merged.
const worlds = new Map<string, World>();
for (const [name, call] of Object.entries(await readCalls())) {
  const method = allMethods.find((each) => callName(each) === name);
  const world = await newWorld(server);
  const request = await call.request(world);
  await callRpc(server.target, world.tenant.headers, method ?? expect.fail(name), request).catch(() => undefined);
  worlds.set(name, world);
}
const writer = await testTenant(sql);
const put = v1(server.url, writer.headers);
const dimensions = (n: number) => ({ host: `web-${n % 7}`, text: 'tab\t, newline\n, \\. and "quotes"' });
/** One event and one point with the number `n`, acknowledged when it resolves. */
async function write(n: number) {
  const timestamp = `${Date.now()}`;
  const answers = await Promise.all([
    put("POST", "/v1/data-receiver/events", {
      events: [
        { name: `event ${n}`, timestamp, dimensions: dimensions(n), severity: "SEVERITY_ERROR", status: "STATUS_OPEN" },
      ],
    }),
    put("POST", "/v1/data-receiver/metrics", {
      metrics: [{ metric: "load", timestamp, value: n, dimensions: dimensions(n) }],
    }),
  ]);
  for (const { status, body } of answers) expect({ status, body }).toMatchObject({ status: 200 });
}
for (let n = 0; n < 20; n += 1) await write(n);
const expiresAt = `${Date.now() + 3_600_000}`;
const labels = { mountpoint: "tab\t, \\N", device: "sda" };
await put("POST", "/v1/data-receiver/events", {
  events: [
    {
      name: "disk full",
      timestamp: `${Date.now()}`,
      dimensions: dimensions(0),
      severity: "SEVERITY_CRITICAL",
      status: "STATUS_OPEN",
      dedupKey: "/var",
      expiresAt,
    },
  ],
});
await put("POST", "/v1/data-receiver/metrics", {
  metrics: [{ metric: "disk.used", timestamp: `${Date.now()}`, value: 1, dimensions: dimensions(0), labels }],
});
await mergeAll(sql, writer.id);

const everyEntity = {
  search_input: { query: { clause: { filter: { field: "name", operation: "OP_EXISTS" } } } },
};
const labelled = { filter: { field: "labels.device", operation: "OP_EQUALS", value: "sda" } };
const downsample = { aggregator: "LAST", period: "1h" };
const eventsOf = (db: Sql) => db<{ name: string }[]>`select name from events where tenant_id = ${writer.id}`;

test("an export while data comes in holds all that was acknowledged before it, and nothing by halves", async () => {
  let stop = false;
  let written = 20;
  const writing = (async () => {
    while (!stop) await write(written++);
  })();
  const file = join(dir, "running");
  while (written < 25) await new Promise((resolve) => setTimeout(resolve, 10));
  const before = written - 1;
  await exportTo(server.database.url, file, version);
  await expect.poll(() => written).toBeGreaterThan(before + 3);
  stop = true;
  await writing;
  expect(statSync(file).mode & 0o777).toBe(0o600);

  const { url } = await emptyDatabase();
  await imported(url, file);
  await on(url, async (db) => {
    const names = new Set((await eventsOf(db)).map(({ name }) => name));
    for (let n = 0; n < before; n += 1) expect(names).toContain(`event ${n}`);
    expect(names.size).toBeLessThan((await eventsOf(sql)).length);
    // One moment: the feed has each occurrence's change, without a gap.
    const [feed] = await db<{ last: bigint; rows: bigint }[]>`
      select max(position) as last, count(*) as rows from feed where tenant_id = ${writer.id}`;
    expect(feed?.rows).toBe(feed?.last);
    expect(Number(feed?.last)).toBeGreaterThanOrEqual(names.size);
  });
});

test("what waits for a lock of an export is a change of the schema, and nothing else", async () => {
  const { sql: holder, close } = connectOnce(server.database.url, sessionName("export"));
  onTestFinished(close);
  await holder.begin(async (tx) => {
    const tables = (await tablesToCopy(tx)).map(({ table }) => `"${table}"`);
    await tx.unsafe(`lock table ${tables.join(", ")} in access share mode`);
    await write(1000);
    const { status } = await put("POST", "/v1/modelcontext/entities:search", everyEntity);
    expect(status).toBe(200);
  });
});

describe("with the servers stopped", () => {
  const file = join(dir, "whole");

  test("an import has the same rows in every table, and a server serves them", async () => {
    await server.stop();
    await fillRest(sql);
    await sql`update rule_matches set metric_labels = '{"a":"b"}'`;
    await checkFilled(sql);
    const source = await contents(sql);
    expect(Object.values(source).filter((text) => text.startsWith("0 rows"))).toEqual([]);
    const { rows } = await exportTo(server.database.url, file, version);
    expect(Object.keys(rows).sort()).toEqual(Object.keys(source).sort());

    const { url } = await emptyDatabase();
    expect(await imported(url, file)).toMatch(/^the database holds \d+ rows of \d+ tables, as of \d{4}-.*Z\n$/);
    await on(url, async (db) => {
      expect(await contents(db)).toEqual(source);
      const partitions = (each: Sql) => tablesToCopy(each).then((all) => all.map(({ partitions: own }) => own));
      expect(await partitions(db)).toEqual(await partitions(sql));
    });

    const config = settings({ DATABASE_URL: url });
    const second = await startServer(config, openLog("silent"));
    try {
      const call = v1(second.url, writer.headers);
      const events = await call("POST", "/v1/events:search", { query: { severities: ["SEVERITY_ERROR"] } });
      expect(events.status).toBe(200);
      const keyed = await call("POST", "/v1/events:search", { query: { severities: ["SEVERITY_CRITICAL"] } });
      expect(keyed.body.results).toMatchObject([
        { dedupKey: "/var", occurrences: [{ status: "STATUS_OPEN", expiresAt }] },
      ]);
      const series = await call("POST", "/v1/metrics:search", {
        entityClause: everyEntity.search_input.query.clause,
        metricClause: labelled,
        downsample,
        timeRange: { start: new Date(Date.now() - 3_600_000).toISOString(), end: new Date().toISOString() },
      });
      expect(series.body.metrics).toMatchObject([{ name: "disk.used", labels }]);
      const found = await call("POST", "/v1/modelcontext/entities:search", everyEntity);
      expect(found.body.entities.entities).toHaveLength(7);
      await on(url, async (db) => {
        const [credential] = await db<{ tenantId: string; id: string }[]>`
          select tenant_id as "tenantId", id from credentials where secrets <> '{}' limit 1`;
        const { tenantId = "", id = "" } = credential ?? {};
        const secrets = await openSecrets(db, tenantId, id, keyring(config));
        expect(secrets.secrets).not.toEqual({});
      });
      const again = v1(second.url, writer.headers);
      const stored = await again("POST", "/v1/data-receiver/metrics", {
        metrics: [{ metric: "load", timestamp: `${Date.now()}`, value: 1, dimensions: dimensions(1) }],
      });
      expect(stored.status).toBe(200);
    } finally {
      await second.stop();
    }
  });

  describe("is refused, and the database stays as it was, when", async () => {
    const target = await testDatabase();
    const edited = (change: (text: Buffer) => Buffer) => {
      const path = join(dir, `edited-${Math.random()}`);
      writeFileSync(path, zstdCompressSync(change(zstdDecompressSync(readFileSync(file)))));
      return path;
    };
    const replaced = (from: string, to: string) => (text: Buffer) =>
      Buffer.from(text.toString("latin1").replace(from, to), "latin1");
    /** The text with a last line that is right again. */
    const closed = (text: Buffer) => {
      const end = text.lastIndexOf("\n", text.length - 2) + 1;
      const sha256 = createHash("sha256").update(text.subarray(0, end)).digest("hex");
      return Buffer.concat([
        text.subarray(0, end),
        Buffer.from(`${JSON.stringify({ ...JSON.parse(text.toString("utf8", end)), sha256 })}\n`),
      ]);
    };
    const cut = (bytes: (size: number) => number) => () => {
      const path = join(dir, `cut-${Math.random()}`);
      writeFileSync(path, readFileSync(file));
      truncateSync(path, bytes(statSync(path).size));
      return path;
    };
    const uncut = () => file;

    test.each<[what: string, file: () => string, message: RegExp, env?: Record<string, string>]>([
      ["the file is not there", () => join(dir, "nowhere"), /^cannot read .*nowhere: ENOENT/],
      ["the file is empty", cut(() => 0), /not a whole export of Belfry: [^\n]*; nothing was imported$/],
      ["the file is cut off in its middle", cut((size) => size >> 1), /not a whole export.*nothing was imported$/],
      ["its last bytes are missing", cut((size) => size - 20), /not a whole export/],
      ["it is something else", () => join(import.meta.dirname, "export.system.test.ts"), /cannot be read on/],
      ["it is compressed text of another kind", () => edited(() => Buffer.from("{}\n")), /of another form/],
      ["a row was changed", () => edited(replaced("event 3", "event 4")), /rows are not those/],
      [
        "its last line is missing",
        () => edited((text) => text.subarray(0, text.lastIndexOf("\n", text.length - 2) + 1)),
        /its end is missing/,
      ],
      ["something follows", () => edited((text) => Buffer.concat([text, Buffer.from("{}\n")])), /rows are not those/],
      [
        "it has another schema",
        () => edited(replaced('"migrations":[', '"migrations":[{"name":"0000_old","digest":""},')),
        /schema/,
      ],
      [
        "a row breaks a rule of the schema",
        () =>
          edited((text) =>
            closed(replaced(`${writer.id}\t${writer.name}`, `00000000-0000-0000-0000-000000000000\tother`)(text)),
          ),
        /foreign key|violates/,
      ],
      [
        "it lacks the master key",
        uncut,
        /protected by the master key test, which is not there/,
        { BELFRY_MASTER_KEYS: "" },
      ],
      [
        "it has another master key of that name",
        uncut,
        /not the one that protects/,
        { BELFRY_MASTER_KEYS: `test:${Buffer.alloc(32, 8).toString("base64")}` },
      ],
    ])("%s", async (_what, make, message, env) => {
      await expect(imported(target.url, make(), env)).rejects.toThrow(message);
      expect(
        await target.sql.unsafe("select (select count(*) from tenants) + (select count(*) from entities) as count"),
      ).toEqual([{ count: 0n }]);
    });

    test("the database has rows, which stay", async () => {
      const { url, sql: db } = target;
      await db`insert into tenants (id, name, created_ms) values (gen_random_uuid(), 'north', 0)`;
      await expect(imported(url, file)).rejects.toThrow(/^the database is not empty: its table tenants has rows; /);
      expect([...(await db`select name from tenants`)]).toEqual([{ name: "north" }]);
    });
  });
});

test("a file of an earlier schema is imported in that, and the schema is then brought up to date", async () => {
  const path = join(dir, "earlier");
  const header = `{"form":"belfry export","formVersion":1,"version":"0.0.1","migrations":[],"takenAt":"2026-01-01T00:00:00Z"}\n`;
  const sha256 = createHash("sha256").update(header).digest("hex");
  writeFileSync(path, zstdCompressSync(`${header}{"rows":{},"sha256":"${sha256}"}\n`));
  const { url } = await emptyDatabase();
  expect(await imported(url, path)).toBe("the database holds 0 rows of 0 tables, as of 2026-01-01T00:00:00Z\n");
  await checkMigrated(url);
  await expect(imported(url, path)).rejects.toThrow(/^the database has a newer schema than the file: /);
});

test("a file of 0.1.0 is imported as it was, with series and events that have neither labels nor keys", async () => {
  const path = join(dir, "first-release");
  const { url: old } = await emptyDatabase();
  await migrate(old, { count: 2 });
  const tenantId = randomUUID();
  const rows = await on(old, async (db) => {
    const entity = entityId(tenantId, { host: "web-1" });
    await db`insert into tenants (id, name, created_ms) values (${tenantId}, 'north', 1)`;
    await db`
      insert into entities (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms)
      values (${tenantId}, ${entity}, 'web-1', '{"host":"web-1"}', '{}', 1, 1, 1)`;
    await db`
      insert into series (tenant_id, number, entity_id, metric, units, description, created_ms)
      values (${tenantId}, 1, ${entity}, 'load', '', '', 1)`;
    const { eventId } = eventIds(tenantId, { host: "web-1" }, "disk full");
    await db`
      insert into events (tenant_id, id, entity_id, name) values (${tenantId}, ${eventId}, ${entity}, 'disk full')`;
    await db`
      insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
        start_ms, last_seen_ms, instance_count)
      values (${tenantId}, ${eventId}, 1, 4, 1, false, '', '', '', '{}', 1, 1, 1)`;
    return await writeAsFirstRelease(db, path);
  });
  expect(rows).toBe(5);
  const { url } = await emptyDatabase();
  expect(await imported(url, path)).toMatch(/^the database holds 5 rows of/);
  await checkMigrated(url);
  await on(url, async (db) => {
    expect([...(await db`select labels, labels_begin, labels_hash from series`)]).toEqual([
      { labels: null, labels_begin: "", labels_hash: Buffer.alloc(0) },
    ]);
    const found = await db`
      select e.dedup_key, o.expires_ms from events e join occurrences o on o.tenant_id = e.tenant_id and o.event_id = e.id`;
    expect([...found]).toEqual([{ dedup_key: null, expires_ms: null }]);
  });
});

/** An export of a database with the schema of 0.1.0; returns how many rows it holds. */
async function writeAsFirstRelease(db: Sql, path: string): Promise<number> {
  const migrations = await appliedMigrations(db);
  const takenAt = new Date().toISOString();
  let text = `${JSON.stringify({ form: "belfry export", formVersion: 1, version: "0.1.0", migrations, takenAt })}\n`;
  const rows: Record<string, number> = {};
  for (const head of await tablesToCopy(db)) {
    const columns = head.columns.map((name) => `"${name}"`);
    const copied = await (
      await db.unsafe(`copy (select ${columns} from "${head.table}") to stdout`).readable()
    ).toArray();
    const lines = Buffer.concat(copied).toString();
    rows[head.table] = lines.split("\n").length - 1;
    text += `${JSON.stringify(head)}\n${lines}\\.\n`;
  }
  const sha256 = createHash("sha256").update(text).digest("hex");
  writeFileSync(path, zstdCompressSync(`${text}${JSON.stringify({ rows, sha256 })}\n`));
  return Object.values(rows).reduce((a, b) => a + b, 0);
}

describe("an export is refused, and leaves no file, when", () => {
  test("the file is there already", async () => {
    const path = join(dir, "taken");
    writeFileSync(path, "mine");
    await expect(exportTo(server.database.url, path, version)).rejects.toThrow(StartError);
    expect(readFileSync(path, "utf8")).toBe("mine");
    expect(readdirSync(dir).filter((name) => name.startsWith("taken"))).toEqual(["taken"]);
  });

  test("its folder is not there", async () => {
    await expect(exportTo(server.database.url, join(dir, "no/folder"), version)).rejects.toThrow(
      /^cannot write .*ENOENT/,
    );
  });

  test("no more can be written, while rows are still on the way", async () => {
    const { url, query } = await emptyDatabase({ migrated: true });
    await query(`insert into feed select gen_random_uuid(), n, 0, decode(string_agg(md5(n::text || i), ''), 'hex')
      from generate_series(1, 300) n, generate_series(1, 1000) i group by n`);
    const path = join(dir, "too-large");
    const main = await program();
    const { PATH = "" } = process.env;
    const limited = `trap "" XFSZ; ulimit -f 64; exec "${process.execPath}" "${main}" export "${path}"`;
    const child = spawn("sh", ["-c", limited], { env: { PATH, DATABASE_URL: url } });
    let said = "";
    child.stderr.on("data", (text) => {
      said += text;
    });
    const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
    expect({ code, said }).toEqual({
      code: 1,
      said: expect.stringMatching(/^belfry: cannot write [^\n]*EFBIG[^\n]*\n$/),
    });
    expect(readdirSync(dir).filter((name) => name.startsWith("too-large"))).toEqual([]);
  });

  test("the database lacks a migration", async () => {
    const { url } = await emptyDatabase();
    await expect(exportTo(url, join(dir, "bare"), version)).rejects.toThrow(/lacks the migration/);
    expect(readdirSync(dir).filter((name) => name.startsWith("bare"))).toEqual([]);
  });
});

afterAll(() => rmSync(dir, { recursive: true, force: true }));
