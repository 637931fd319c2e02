import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import fastify from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { builtConsole } from "../../src/console/built-files.ts";
import { consolePages } from "../../src/console/serve.ts";
import { openLog } from "../../src/rpc/log.ts";

const root = new URL("../..", import.meta.url).pathname;
const scratch = mkdtempSync(join(tmpdir(), "belfry-console-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A checkout with the console's page and one script of our own in its place. */
const checkout = join(scratch, "checkout");
mkdirSync(join(checkout, "src"), { recursive: true });
for (const each of ["src/console", "console", "package.json", "package-lock.json", "tsconfig.json"])
  cpSync(join(root, each), join(checkout, each), { recursive: true });
for (const each of ["gen", "node_modules"]) symlinkSync(join(root, each), join(checkout, each));
const script = (text: string) => writeFileSync(join(checkout, "console/main.tsx"), text);
script(
  `document.title = "one";${" ".repeat(10)}console.log(${JSON.stringify("long enough to be compressed ".repeat(50))});`,
);

/** The pages of a data directory, as a server has them. */
function pagesOf(dataDir: string, from = checkout) {
  const app = fastify();
  consolePages(builtConsole({ root: from, dataDir, follow: false }), openLog("silent")).serve(app);
  return (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers });
}

describe("the page and its files", () => {
  const dataDir = join(scratch, "data");
  const get = pagesOf(dataDir);
  let names: string[];

  beforeAll(async () => {
    const { body } = await get("/console/");
    names = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name]) => name as string);
  }, 120_000);

  test("the page is asked for again each time, and lets nothing in from elsewhere, nothing inline and no frame", async () => {
    const page = await get("/console/");
    expect(page).toMatchObject({ statusCode: 200, headers: { "content-type": "text/html; charset=utf-8" } });
    const { headers } = page;
    expect(headers).toMatchObject({
      "cache-control": "no-cache",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
    });
    const policy = Object.fromEntries(
      String(headers["content-security-policy"])
        .split("; ")
        .map((rule) => rule.split(/ (.*)/s).slice(0, 2)),
    );
    expect(policy).toMatchObject({
      "default-src": "'none'",
      "script-src": "'self'",
      "style-src": "'self'",
      "connect-src": "'self'",
      "base-uri": "'none'",
      "form-action": "'none'",
      "frame-ancestors": "'none'",
      "require-trusted-types-for": "'script'",
    });
    expect(page.body).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bon\w+=|\bstyle=/);
    const again = await get("/console/", { "if-none-match": String(headers.etag) });
    expect(again).toMatchObject({ statusCode: 304, body: "" });
  });

  test("files have digests in their names, are kept for ever, and are compressed beforehand", async () => {
    expect(names.length).toBeGreaterThan(2);
    for (const name of names) {
      expect(name).toMatch(/^(?:\/console\/|\.\/)?[\w.]+-[\w-]{8,}\.(?:js|css|svg)$/);
      const url = new URL(name, "http://a/console/").pathname;
      const plain = await get(url);
      expect(plain).toMatchObject({ statusCode: 200 });
      expect(plain.headers).toMatchObject({
        "cache-control": "public, max-age=31536000, immutable",
        "x-content-type-options": "nosniff",
      });
      if (plain.rawPayload.byteLength <= 1024) continue;
      for (const [encoding, unpack] of [
        ["br", brotliDecompressSync],
        ["gzip", gunzipSync],
      ] as const) {
        const packed = await get(url, { "accept-encoding": encoding });
        expect(packed.headers).toMatchObject({ "content-encoding": encoding, vary: "accept-encoding" });
        expect(unpack(packed.rawPayload).equals(plain.rawPayload)).toBe(true);
      }
    }
  });

  test("one that is not there is not found, wherever it leads", async () => {
    for (const url of [
      "/console/none.js",
      "/console/../package.json",
      "/console/%2e%2e%2fpackage.json",
      "/console/a.br",
    ])
      expect((await get(url)).statusCode, url).toBe(404);
    expect(await get("/console")).toMatchObject({ statusCode: 308, headers: { location: "/console/" } });
  });

  test("what was built is taken at the next start, and what was built of other sources is removed", async () => {
    const [digest] = readdirSync(join(dataDir, "console"));
    writeFileSync(join(dataDir, "console", digest ?? "", "index.html"), "the same as before");
    expect((await pagesOf(dataDir)("/console/")).body).toBe("the same as before");
  });
});

describe("sources that change", () => {
  const dataDir = join(scratch, "followed");

  const scriptOf = (files: Awaited<ReturnType<ReturnType<typeof builtConsole>["files"]>>) =>
    [...files].find(([name]) => name.endsWith(".js"))?.[1].bytes.toString();

  test("are built again while a server follows them; a mistake is reported in the bundler's words and can be mended", {
    timeout: 120_000,
  }, async () => {
    const { files } = builtConsole({ root: checkout, dataDir, follow: true });
    expect(scriptOf(await files())).toContain("one");
    expect(await files()).toBe(await files());
    script('document.title = "two";');
    expect(scriptOf(await files())).toContain("two");
    expect(readdirSync(join(dataDir, "console"))).toHaveLength(1);
    script('import "./none.ts";');
    const refusal = await files().then(() => expect.fail("it was built"), String);
    expect(refusal).toContain("Could not resolve './none.ts' in console/main.tsx");
    expect(refusal).not.toMatch(/\p{Cc}(?<!\n)|node_modules/u);
    // For a while the same sources fail without another try, whoever asks.
    const [one, other] = await Promise.all([files().catch(Object), files().catch(Object)]);
    expect(one).toBeInstanceOf(Error);
    expect(other).toBe(one);
    expect(await files().catch(Object)).toBe(one);
    script('document.title = "three";');
    expect(scriptOf(await files())).toContain("three");
  });
});

test("several processes may build the same at once, and a stop ends a build", { timeout: 120_000 }, async () => {
  const dataDir = join(scratch, "shared");
  const build = (signal?: AbortSignal) =>
    builtConsole({ root: checkout, dataDir, follow: false, ...(signal && { signal }) }).files();
  await expect(build(AbortSignal.abort())).rejects.toThrow("aborted");
  const all = await Promise.all([build(), build(), build()]);
  expect(all.map((files) => [...files.keys()])).toEqual(all.map(() => [...(all[0] as (typeof all)[0]).keys()]));
  expect(readdirSync(join(dataDir, "console"))).toEqual([expect.stringMatching(/^\w{32}$/)]);
});

describe("where nothing can be built", () => {
  test("the page says so, and how to mend it", async () => {
    const file = join(scratch, "file");
    writeFileSync(file, "");
    const answer = await pagesOf(file)("/console/");
    expect(answer).toMatchObject({ statusCode: 503, headers: { "content-type": "text/html; charset=utf-8" } });
    expect(answer.body).toContain("<code>npm ci</code>");
    expect(answer.headers["content-security-policy"]).toContain("default-src 'none'");
  });
});
