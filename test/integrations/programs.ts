import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { temporaryDir } from "../support/database.ts";

/** Whether Debian's packages of these programs are installed; says so where they are not. */
export function installed(...programs: string[]): boolean {
  const missing = programs.filter((program) => {
    try {
      execFileSync("which", [program], { stdio: "ignore" });
      return false;
    } catch {
      return true;
    }
  });
  if (missing.length > 0) console.warn(`NOT TESTED, since not on the PATH: ${missing.join(", ")}`);
  return missing.length === 0;
}

/** A port that is free now. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** A Prometheus whose alerts end 8 s after it has sent them last, that evaluates a rule each second and sends its alerts to a server. */
export interface RunningPrometheus {
  /** Makes the rule fire, or not any more. */
  fire(firing: boolean): Promise<void>;
  kill(): void;
  output(): string;
}

export async function startPrometheus(
  { url, ca, key }: { url: string; ca: string; key: string },
  replica = "a",
): Promise<RunningPrometheus> {
  const dir = temporaryDir();
  const port = await freePort();
  const rules = (firing: boolean) =>
    writeFileSync(
      join(dir, "rules.yml"),
      JSON.stringify({
        groups: [
          {
            name: "belfry",
            interval: "1s",
            rules: [
              {
                alert: "DiskFull",
                expr: `vector(1) == ${firing ? 1 : 0}`,
                labels: { severity: "critical", job: "node", instance: "web-1:9100" },
                annotations: { summary: "97 % is used" },
              },
            ],
          },
        ],
      }),
    );
  rules(false);
  const { host, protocol } = new URL(url);
  writeFileSync(
    join(dir, "prometheus.yml"),
    JSON.stringify({
      global: { evaluation_interval: "1s", external_labels: { replica } },
      rule_files: ["rules.yml"],
      alerting: {
        // A pair differs by a label, which is dropped before alerts are sent.
        alert_relabel_configs: [{ regex: "replica", action: "labeldrop" }],
        alertmanagers: [
          {
            scheme: protocol.slice(0, -1),
            tls_config: { ca_file: ca },
            authorization: { credentials: key },
            static_configs: [{ targets: [host] }],
          },
        ],
      },
    }),
  );
  const process: ChildProcess = spawn(
    "prometheus",
    [
      "--config.file=prometheus.yml",
      "--storage.tsdb.path=data",
      `--web.listen-address=127.0.0.1:${port}`,
      "--web.enable-lifecycle",
      "--rules.alert.resend-delay=2s",
      "--log.level=warn",
    ],
    { cwd: dir, stdio: ["ignore", "pipe", "pipe"] },
  );
  let output = "";
  process.stdout?.on("data", (text) => (output += text));
  process.stderr?.on("data", (text) => (output += text));
  for (let i = 0; ; i++) {
    const ready = await fetch(`http://127.0.0.1:${port}/-/ready`)
      .then(({ ok }) => ok)
      .catch(() => false);
    if (ready) break;
    if (i > 200 || process.exitCode !== null) throw new Error(`Prometheus did not start: ${output}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return {
    async fire(firing) {
      rules(firing);
      await fetch(`http://127.0.0.1:${port}/-/reload`, { method: "POST" });
    },
    kill: () => void process.kill("SIGKILL"),
    output: () => output,
  };
}
