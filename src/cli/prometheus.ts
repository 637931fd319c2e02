import { resolve } from "node:path";
import { parseArgs } from "node:util";
import type { Server } from "../server.ts";
import type { KeptKey } from "../tenants/prometheus-key.ts";
import { callableUrl } from "./welcome.ts";

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
 * read, a block for prometheus.yml, and a file with one rule.
 */
export function prometheusLines(server: Pick<Server, "url" | "names" | "caFile">, key: KeptKey): string {
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

Save this rule as belfry-rules.yml beside it, and reload Prometheus.

groups:
  - name: belfry
    rules:
      - alert: TargetDown
        expr: up == 0
        for: 1m
        labels: { severity: critical }
        annotations: { summary: "{{ $labels.instance }} of {{ $labels.job }} does not answer" }

`;
}

/** Quotes a path for a shell where it is no plain word. */
const quoted = (path: string) => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);
