import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { temporaryDir } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { freePort, installed } from "./programs.ts";

const server = await testServer({});
const { sql } = server.database;
const tenant = await testTenant(sql);
const address = `127.0.0.1:${await freePort()}`;

/** A Prometheus that scrapes itself each second, and writes what it scrapes to the server. */
function startPrometheus(): () => string {
  const dir = temporaryDir();
  writeFileSync(
    join(dir, "prometheus.yml"),
    JSON.stringify({
      global: { scrape_interval: "1s" },
      scrape_configs: [{ job_name: "prometheus", static_configs: [{ targets: [address] }] }],
      remote_write: [
        {
          url: `${server.url}/api/v1/write`,
          authorization: { credentials: tenant.headers["service-api-key"] },
          metadata_config: { send_interval: "2s" },
        },
      ],
    }),
  );
  const running = spawn(
    "prometheus",
    ["--config.file=prometheus.yml", "--storage.tsdb.path=data", `--web.listen-address=${address}`],
    { cwd: dir, stdio: ["ignore", "pipe", "pipe"] },
  );
  let output = "";
  running.stderr.on("data", (text) => (output += text));
  afterAll(() => void running.kill("SIGKILL"));
  return () => output;
}

test.runIf(installed("prometheus"))("what Prometheus scrapes of itself stands here", async () => {
  const output = startPrometheus();
  const stored = async () => {
    const [row] = await sql`select count(*)::int as series, count(*) filter (where description <> '')::int as described
      from series where tenant_id = ${tenant.id}`;
    return row as { series: number; described: number };
  };
  const endMs = Date.now() + 30_000;
  while (Date.now() < endMs && (await stored()).described < 100)
    await new Promise((resolve) => setTimeout(resolve, 200));
  const { series, described } = await stored();
  expect([series > 300, described > 100], output()).toEqual([true, true]);
  const [up] = await sql`select s.metric, e.dimensions, s.labels from series s
    join entities e on e.tenant_id = s.tenant_id and e.id = s.entity_id
    where s.tenant_id = ${tenant.id} and s.metric = 'up'`;
  expect(up).toMatchObject({ metric: "up", dimensions: { instance: address, job: "prometheus" } });
  const page = await (await fetch(`http://${address}/metrics`)).text();
  const failed = /^prometheus_remote_storage_samples_(?:failed|dropped)_total\{.*\} ([1-9]\d*)$/m.exec(page);
  expect(failed?.[0]).toBeUndefined();
  expect(output()).not.toMatch(/non-recoverable/);
});
