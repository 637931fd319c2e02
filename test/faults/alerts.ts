import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../src/db/connect.ts";
import { dedupKeyOf } from "../../src/integrations/alertmanager/event-of-alert.ts";
import { clear, place } from "./place.ts";
import { type Prometheus, until } from "./prometheus-program.ts";
import { freePort } from "./server-process.ts";
import type { Tenant } from "./stage.ts";

type Headers = Record<string, string>;

/** Each alert fires for the first half of its period, again and again; their periods do not begin together. */
const periodSec = 240;
const shiftSec = 40;
const alertname = "DiskFull";
const mountpoints = ["/", "/boot", "/home", "/srv", "/tmp", "/var"] as const;
/** A firing alert is sent again, and is believed for four times as long: every fault is over before. */
const resendSec = 30;
/** An alert that ended is sent again as well. */
const settledMs = 90_000;

const shiftOf = (mountpoint: string) => mountpoints.indexOf(mountpoint as "/") * shiftSec;
/** The number of the period that a time lies in, and how far into it, s. */
const periodOf = (mountpoint: string, sec: number) => Math.floor((sec + shiftOf(mountpoint)) / periodSec);
const intoPeriod = (mountpoint: string, sec: number) => (sec + shiftOf(mountpoint)) % periodSec;

export const alertArgs = [`--rules.alert.resend-delay=${resendSec}s`];

/** The rules by which the alerts fire: Prometheus' own clock decides. */
export const alertRules = {
  groups: [
    {
      name: "disks",
      rules: mountpoints.map((mountpoint) => ({
        alert: alertname,
        expr: `(vector(time()) + ${shiftOf(mountpoint)}) % ${periodSec} < ${periodSec / 2}`,
        labels: { mountpoint, severity: "critical", job: "node", instance: "web-1:9100" },
        annotations: { summary: "97 % is used" },
      })),
    },
  ],
};

/** Where alerts go, in Prometheus' configuration. */
export const alertmanagers = (targets: readonly { url: string; key?: string }[]) => ({
  alertmanagers: targets.map(({ url, key }) => ({
    timeout: "5s",
    static_configs: [{ targets: [new URL(url).host] }],
    ...(key !== undefined && { authorization: { credentials: key } }),
  })),
});

/** Debian's Alertmanager, which sends alerts to servers by its webhook, or as `config` says. Resolves with its address. */
export async function startAlertmanager(
  stack: AsyncDisposableStack,
  urls: readonly string[],
  headers: Headers,
  config?: object,
) {
  const dir = await place();
  stack.defer(() => clear(dir));
  const http_config = { authorization: { credentials: headers["service-api-key"] } };
  const webhook_configs = urls.map((url) => ({
    url: `${url}/v1/integrations/alertmanager-webhook`,
    send_resolved: true,
    http_config,
  }));
  writeFileSync(
    join(dir, "alertmanager.yml"),
    JSON.stringify(
      config ?? {
        route: { receiver: "belfry", group_by: ["mountpoint"], group_wait: "1s", group_interval: "10s" },
        receivers: [{ name: "belfry", webhook_configs }],
      },
    ),
  );
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    "prometheus-alertmanager",
    [
      "--config.file=alertmanager.yml",
      "--storage.path=data",
      "--cluster.listen-address=",
      `--web.listen-address=${address}`,
    ],
    { cwd: dir, stdio: ["ignore", "ignore", "pipe"] },
  );
  let output = "";
  child.stderr.on("data", (text) => (output += text));
  const ended = once(child, "exit");
  stack.defer(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const url = `http://${address}`;
  await until(
    async () => (await fetch(`${url}/-/ready`)).ok,
    () => `Alertmanager does not serve: ${output}`,
  );
  return url;
}

/** In which periods Prometheus has found an alert firing. */
type Fired = Set<number>;

async function fired(address: string): Promise<{ untilSec: number; periods: Map<string, Fired> }> {
  const query = new URLSearchParams({ query: `ALERTS{alertstate="firing"}[1d]` });
  const answer = await (await fetch(`http://${address}/api/v1/query?${query}`)).json();
  const { result } = (answer as { data: { result: { metric: Headers; values: [number, string][] }[] } }).data;
  const periods = new Map<string, Fired>();
  for (const { metric, values } of result) {
    const mountpoint = metric.mountpoint as string;
    periods.set(mountpoint, new Set(values.map(([sec]) => periodOf(mountpoint, sec))));
  }
  return { untilSec: Date.now() / 1000, periods };
}

interface Occurrence {
  dedupKey: string;
  startSec: number;
  open: boolean;
  notes: number;
}

const keyOf = (mountpoint: string) =>
  dedupKeyOf(Object.entries({ alertname, mountpoint, severity: "critical", job: "node", instance: "web-1:9100" }));

function differences(
  { untilSec, periods }: Awaited<ReturnType<typeof fired>>,
  found: readonly Occurrence[],
  sinceSec: number,
): string[] {
  const wrong: string[] = [];
  if (periods.size === 0) wrong.push("no alert has fired");
  for (const mountpoint of mountpoints) {
    const own = found.filter(({ dedupKey }) => dedupKey === keyOf(mountpoint));
    // What fired already when Prometheus started, may have ended before it was sent, or stored.
    const isWhole = (period: number) => period > periodOf(mountpoint, sinceSec);
    const is = own.map(({ startSec }) => periodOf(mountpoint, startSec)).filter(isWhole);
    const wanted = [...(periods.get(mountpoint) ?? [])].filter(isWhole).sort((a, b) => a - b);
    if (`${is}` !== `${wanted}`)
      wrong.push(`alert of ${mountpoint}: occurrences of the periods ${is}, it fired in ${wanted}`);
    const firing = intoPeriod(mountpoint, untilSec) < periodSec / 2;
    for (const { startSec, open, notes } of own) {
      const shouldBeOpen = firing && periodOf(mountpoint, startSec) === periodOf(mountpoint, untilSec);
      const what = `alert of ${mountpoint}, ${Math.round(startSec - sinceSec)} s after the start`;
      if (open !== shouldBeOpen) wrong.push(`${what} is ${open ? "open" : "closed"}, and should not be`);
      if (notes > 0) wrong.push(`${what} has expired, and was sent again all the time`);
    }
  }
  if (found.some(({ dedupKey }) => !mountpoints.some((mountpoint) => keyOf(mountpoint) === dedupKey)))
    wrong.push("an alert that never fired");
  return wrong;
}

/** Each time that an alert has fired is one occurrence, which is open while it does, and which nothing but its end has closed. */
export async function compareAlerts(
  db: Db,
  { id: tenantId }: Tenant,
  { address }: Prometheus,
  startSec: number,
): Promise<string[]> {
  const endMs = performance.now() + settledMs;
  for (;;) {
    const found = await db<Occurrence[]>`
      select e.dedup_key as "dedupKey", o.start_ms::float8 / 1000 as "startSec", o.end_ms is null as open,
        (select count(*)::int4 from annotations a
          where a.tenant_id = ${tenantId} and a.event_id = o.event_id and a.number = o.number) as notes
      from occurrences o join events e on e.tenant_id = ${tenantId} and e.id = o.event_id
      where o.tenant_id = ${tenantId} and e.dedup_key is not null order by o.start_ms`;
    const wrong = differences(await fired(address), found, startSec);
    if (wrong.length === 0 || performance.now() > endMs) return wrong.slice(0, 10);
    await sleep(200);
  }
}
