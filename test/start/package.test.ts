import { spawn } from "node:child_process";
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { testDatabase } from "../support/database.ts";
import { masterKeys } from "../support/server.ts";

/*
 * The package as `npm pack` makes it, in an empty folder: installed without the network, so that its dependencies are links to
 * those that are installed here. What npm does with it by itself, its install scripts included, is tried by hand for each release.
 */
const root = join(import.meta.dirname, "../..");
const dir = mkdtempSync(join(tmpdir(), "belfry-package-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Runs a program to its end. */
async function run(command: string, args: string[], cwd: string, env: Record<string, string> = {}) {
  const child = spawn(command, args, { cwd, env: { PATH: process.env.PATH ?? "", ...env } });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text) => {
      said += text;
    });
  }
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { code, said };
}

const { name, version, dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const installed = join(dir, "node_modules", name);

test("npm packs it, without sources, tests and tools", { timeout: 120_000 }, async () => {
  const cache = { npm_config_cache: join(dir, "cache"), HOME: dir };
  expect(await run("npm", ["pack", "--offline", "--pack-destination", dir], root, cache)).toMatchObject({ code: 0 });
  expect(existsSync(join(root, "dist"))).toBe(false);
  mkdirSync(installed, { recursive: true });
  const tar = ["-xzf", join(dir, `${name}-${version}.tgz`), "--strip-components=1", "-C", installed];
  expect(await run("tar", tar, dir)).toMatchObject({ code: 0 });
  const files = globSync("**/*", { cwd: installed });
  expect(files.filter((path) => /\.tsx?$|(^|\/)test(\/|$)|node_modules/.test(path))).toEqual([]);
  const sources = globSync("{src,gen}/**/*.{ts,js}", { cwd: root, exclude: ["src/transcoding/plugin/**"] });
  const modules = files.filter((path) => /^dist\/(?!console\/).*\.js$/.test(path));
  expect(modules.sort()).toEqual(sources.map((path) => `dist/${path.replace(/\.ts$/, ".js")}`).sort());
  const built = files.filter((path) => /^dist\/console\/.*\.(?:html|js|css|svg)$/.test(path));
  expect(built).toContain("dist/console/index.html");
  expect(built.flatMap((path) => [`${path}.br`, `${path}.gz`]).filter((path) => !files.includes(path))).toEqual([]);
});

test("it serves from an empty folder, on the packages that it names and no other", { timeout: 120_000 }, async () => {
  for (const each of Object.keys(dependencies)) {
    const link = join(dir, "node_modules", each);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, "node_modules", each), link);
  }
  const bin = join(installed, JSON.parse(readFileSync(join(installed, "package.json"), "utf8")).bin[name]);
  expect(await run(bin, ["--help"], dir)).toMatchObject({ code: 0, said: expect.stringContaining("BELFRY_PORT") });
  expect(await run(bin, ["export"], dir)).toMatchObject({
    said: expect.stringContaining("  npx belfry export <file>"),
  });
  expect(await run(bin, ["schema", "export", "schema"], dir)).toMatchObject({ code: 0 });
  expect(existsSync(join(dir, "schema/google/rpc/error_details.proto"))).toBe(true);

  const { url } = await testDatabase();
  const child = spawn(bin, ["serve"], {
    cwd: dir,
    env: {
      PATH: process.env.PATH ?? "",
      DATABASE_URL: url,
      BELFRY_PORT: "0",
      BELFRY_PLAINTEXT: "1",
      BELFRY_MASTER_KEYS: masterKeys,
    },
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text) => {
      said += text;
    });
  }
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  try {
    await expect.poll(() => said, { timeout: 60_000 }).toMatch(/Belfry serves at |\nbelfry: /);
    const address = /Belfry serves at (\S+)/.exec(said)?.[1] ?? expect.fail(said);
    expect(await (await fetch(`${address}/healthz`)).json()).toEqual({ status: "alive", version });
    expect((await fetch(`${address}/v1/api-clients`)).status).toBe(401);
    // As it was built when it was packed.
    const page = await fetch(`${address}/console/`);
    expect(page.status).toBe(200);
    expect(existsSync(join(dir, ".belfry/console"))).toBe(false);
  } finally {
    child.kill("SIGTERM");
  }
  expect(await ended, said).toBe(0);
  expect(said).toContain(`"version":"${version}"`);
});
