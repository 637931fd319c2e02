import { describe, expect, test } from "vitest";
import { SettingError } from "../../src/config/parsers.ts";
import { readConfig } from "../../src/config/settings.ts";
import { recentDeaths } from "../../src/processes/fleet.ts";
import { leastLoaded } from "../../src/processes/port-dispatch.ts";
import {
  automaticCount,
  freeConnections,
  heapLimit,
  limitShares,
  processCount,
} from "../../src/processes/process-count.ts";
import { mergedMetrics } from "../../src/telemetry/metrics-port.ts";
import { testDatabase } from "../support/database.ts";

const GiB = 1024 ** 3;
const machine = { processors: 16, memoryBytes: 64 * GiB, connectionsEach: 22 };

describe("how many processes serve", () => {
  test.each([
    ["half of the processors", machine, 8, "half of 16 processors"],
    ["one on two processors", { ...machine, processors: 2 }, 1, "half of 2 processors"],
    ["one at least", { ...machine, processors: 1, memoryBytes: GiB / 2 }, 1, "half of 1 processors"],
    ["no more than gibibytes", { ...machine, memoryBytes: 3.5 * GiB }, 3, "1 GiB for each of 3.5 GiB"],
    [
      "no more than the database has connections for",
      { ...machine, freeConnections: 97 },
      4,
      "22 for each of 97 free database connections",
    ],
  ])("%s", (_, grants, count, because) => {
    expect(automaticCount(grants)).toEqual({ count, because });
  });

  test("as many as are set, and nothing is asked for it", async () => {
    const config = readConfig({ BELFRY_PROCESSES: "5", DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" });
    expect(await processCount(config)).toEqual({ count: 5, because: "BELFRY_PROCESSES" });
    expect(readConfig({}).processes).toBe("auto");
    expect(() => readConfig({ BELFRY_PROCESSES: "0" })).toThrow(
      new SettingError("BELFRY_PROCESSES must be a whole number from 1 to 128, or auto"),
    );
  });

  test("a database says what it has left", async () => {
    const { sql } = await testDatabase();
    const before = await freeConnections(sql);
    expect(before).toBeGreaterThan(0);
    const [row] = await sql<[{ most: number }]>`select current_setting('max_connections')::int4 as most`;
    expect(before).toBeLessThan(row.most);
  });
});

test("bounds of a machine are divided, those of memory down to what large messages need", () => {
  const config = readConfig({});
  const four = limitShares(config, 4);
  expect(four.connectionsMax * 4).toBe(config.connectionsMax);
  expect(four.streamsMax * 4).toBe(config.streamsMax);
  expect(four.waitingCallsMax * 4).toBe(config.waitingCallsMax);
  expect(four.bodyBytesMax * 4).toBe(config.bodyBytesMax);
  expect(four.answerBytesMax * 4).toBe(config.answerBytesMax);
  expect(limitShares(config, 16)).toMatchObject({ bodyBytesMax: 2 ** 25, answerBytesMax: 2 ** 26, streamsMax: 313 });
  expect(four.poolConnectionsMax).toBe(config.poolConnectionsMax);
});

describe("a connection goes", () => {
  const member = (open: number, more: object = {}) => ({
    state: "serving" as const,
    sent: open,
    load: { taken: open, open },
    reportedMs: 0,
    ...more,
  });

  test("where fewest are, those on their way included", () => {
    const [one, two] = [member(3, { sent: 5, load: { taken: 3, open: 3 } }), member(4)];
    expect(leastLoaded([one, two], 0)).toBe(two);
  });

  test("of equals, to the one that was given fewer", () => {
    const [one, two] = [member(0, { sent: 9, load: { taken: 9, open: 0 } }), member(0)];
    expect(leastLoaded([one, two], 0)).toBe(two);
  });

  test("to one that is ready and reports, if any is", () => {
    const away = member(0, { load: { taken: 0, open: 0, notReady: "the database is away" } });
    const busy = member(9, { reportedMs: 9000 });
    const silent = member(1);
    expect(leastLoaded([away, silent, busy], 10_000)).toBe(busy);
    expect(leastLoaded([away, silent], 10_000)).toBe(away);
    expect(leastLoaded([member(0, { state: "starting" as const })], 0)).toBeUndefined();
  });
});

test("a death is followed by a start, however many there were: at once, then after longer pauses, from the fifth in ten minutes on after a minute", () => {
  const deaths = recentDeaths();
  expect([0, 1, 2, 3].map((minute) => deaths.note(minute * 60_000).waitMs)).toEqual([0, 1000, 2000, 4000]);
  expect(deaths.note(10.5 * 60_000)).toEqual({ count: 4, waitMs: 4000 });
  for (let count = 5; count < 100; count += 1) expect(deaths.note(10.6 * 60_000)).toEqual({ count, waitMs: 60_000 });
  expect(deaths.note(30 * 60_000)).toEqual({ count: 1, waitMs: 0 });
});

describe("the heap of a process is bounded", () => {
  test.each([
    ["by two fifths of what is granted", 1.5 * GiB, 1, 614],
    ["by its share of that, where several serve", 4 * GiB, 4, 409],
    ["by 256 MiB at least", GiB / 4, 1, 256],
    ["by 1 GiB at most", 64 * GiB, 2, 1024],
  ])("%s", (_, granted, processes, mebibytes) => {
    expect(heapLimit(granted, processes)).toBe(`--max-old-space-size=${mebibytes}`);
  });
});

test("metrics of several processes are one text, in which each metric is described once", () => {
  const of = (process: number, more = "") =>
    `# HELP a Some \\n lines.\n# TYPE a gauge\na{process="${process}"} 1\n\n# HELP b Rare.\n# TYPE b counter\n${more}`;
  expect(mergedMetrics([of(1), of(2, 'b{process="2"} 7\n'), ""])).toBe(
    '# HELP a Some \\n lines.\n# TYPE a gauge\na{process="1"} 1\na{process="2"} 1\n\n# HELP b Rare.\n# TYPE b counter\nb{process="2"} 7\n',
  );
});
