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

/**
 * Returns what an operator of Prometheus pastes: a block for prometheus.yml and a file with one rule. Only a terminal is shown the
 * key itself; elsewhere the block names the file that keeps it.
 */
export function prometheusLines(
  server: Pick<Server, "url" | "names" | "caFile">,
  key: KeptKey,
  toTerminal: boolean,
): string {
  const url = new URL(callableUrl(server));
  const scheme = url.protocol.slice(0, -1);
  const credentials = toTerminal ? `credentials: ${key.secret}` : `credentials_file: ${quoted(resolve(key.file))}`;
  const connection = (indent: string) =>
    [
      `${indent}authorization:`,
      `${indent}  ${credentials}`,
      ...(server.caFile === undefined
        ? []
        : [`${indent}tls_config:`, `${indent}  ca_file: ${quoted(resolve(server.caFile))}`]),
    ].join("\n");
  return `Prometheus: add this block to prometheus.yml. Its key may only send data, and is kept in ${key.file}.

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

/** Quotes a path for YAML where it is no plain scalar. */
const quoted = (path: string) => (/^[\w./-]+$/.test(path) ? path : JSON.stringify(path));
