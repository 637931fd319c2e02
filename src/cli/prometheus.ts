import { resolve } from "node:path";
import { parseArgs } from "node:util";
import type { Server } from "../server.ts";
import type { PrometheusKey } from "../tenants/prometheus-key.ts";
import { callableUrl, curlWith } from "./welcome.ts";

/** Asks `serve` to print a block for Prometheus, of this tenant; undefined: of the only one. */
export interface PrometheusWish {
  tenant: string | undefined;
}

/** Reads the options of `serve`: null without `--prometheus`, undefined when the command line is not one of `serve`. */
export function prometheusWish(args: readonly string[]): PrometheusWish | null | undefined {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { prometheus: { type: "boolean" }, tenant: { type: "string" } },
    });
    if (values.prometheus === true) return { tenant: values.tenant };
    return values.tenant === undefined ? null : undefined;
  } catch {
    return undefined;
  }
}

/** Where Debian's package of Prometheus reads its files, as an account of its own. */
const [account, folder] = ["prometheus", "/etc/prometheus"];

/**
 * Returns what an operator of Prometheus pastes: commands that give it the key and the CA, which lie where only the server's own account can
 * read, a block for prometheus.yml, a file with two rules, and the two calls that page for them. `managerKey`: the file of a key for the
 * calls; absent: the reader has one.
 */
export function prometheusLines(
  server: Pick<Server, "url" | "names" | "caFile">,
  key: PrometheusKey,
  managerKey?: string,
): string {
  const url = new URL(callableUrl(server));
  const scheme = url.protocol.slice(0, -1);
  const [keyFile, caFile] = [`${folder}/belfry.key`, `${folder}/belfry-ca.pem`];
  const copies = [
    { from: key.file, to: keyFile, mode: "0400" },
    ...(server.caFile === undefined ? [] : [{ from: server.caFile, to: caFile, mode: "0444" }]),
  ].map(({ from, to, mode }) => `sudo install -o ${account} -g ${account} -m ${mode} ${quoted(resolve(from))} ${to}`);
  const connection = (indent: string) =>
    [
      `${indent}authorization:`,
      `${indent}  credentials_file: ${keyFile}`,
      ...(server.caFile === undefined ? [] : [`${indent}tls_config:`, `${indent}  ca_file: ${caFile}`]),
    ].join("\n");
  return `Prometheus: give it the key, which may only send data${server.caFile === undefined ? "" : ", and the CA"}. Name the account that it runs as, and its folder, where they are others.

${copies.join("\n")}

Add this block to ${folder}/prometheus.yml.

alerting:
  alertmanagers:
    - scheme: ${scheme}
      static_configs:
        - targets: ["${url.host}"]
${connection("      ")}
remote_write:
  - url: ${url.origin}/api/v1/write
${connection("    ")}
rule_files: [belfry-rules.yml]

Save these rules as belfry-rules.yml beside it, and reload Prometheus.

groups:
  - name: belfry
    rules:
      - alert: TargetDown
        expr: up == 0
        for: 1m
        labels: { severity: critical }
        annotations: { summary: "{{ $labels.instance }} of {{ $labels.job }} does not answer" }
      - alert: DiskFull
        expr: node_filesystem_avail_bytes{fstype!~"tmpfs|ramfs"} / node_filesystem_size_bytes < 0.1
        for: 5m
        labels: { severity: critical }
        annotations: { summary: "only {{ $value | humanizePercentage }} of {{ $labels.mountpoint }} is free" }

Two calls page you when one of them fires on any host, and say when it is over. Put in the integration key of your PagerDuty service;
docs/destinations.md has the other kinds.

${pagingCalls(url.origin, curlWith(server.caFile, managerKey))}

`;
}

function pagingCalls(origin: string, curl: string): string {
  const destination = { name: "pager", type: { pagerduty: { integrationKey: "YOUR-INTEGRATION-KEY" } } };
  const matchers = ['alertname=~"TargetDown|DiskFull"'];
  const rule = { name: "page me", enabled: true, sendUpdates: true, matchers, destinationNames: ["pager"] };
  const call = (path: string, body: object) => `${curl} ${origin}/v1/notification/${path} -d '${JSON.stringify(body)}'`;
  return `${call("destinations", destination)}

${call("rules", rule)}`;
}

/** Quotes a path for a shell where it is no plain word. */
const quoted = (path: string) => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);
