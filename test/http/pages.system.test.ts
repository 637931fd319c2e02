import { X509Certificate } from "node:crypto";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { certificate } from "../../src/http/certificate.ts";
import { testBrowser } from "../support/browser.ts";
import { httpVersions, raw } from "../support/clients.ts";
import { temporaryDir } from "../support/database.ts";
import { reasonDetail } from "../support/reasons.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { headers: key } = await testTenant(server.database.sql);
const plain = await testServer({});
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
/** As browsers ask for a page. */
const html = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

describe.each(httpVersions)("over HTTP/%s", (http) => {
  const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    raw(server.target, http, { method, path, headers });

  test("/ is a page for browsers, and our error for programs", async () => {
    const page = await get("/", html);
    expect(page).toMatchObject({ status: 200, headers: { "content-type": "text/html; charset=utf-8" } });
    expect(page.headers.vary).toBe("accept, accept-encoding");
    expect(page.body.toString()).toContain(`version ${version}`);
    for (const headers of [undefined, { accept: "*/*" }, { accept: "application/json" }]) {
      const answer = await get("/", headers);
      expect({ status: answer.status, body: JSON.parse(answer.body.toString()) }).toEqual({
        status: 404,
        body: { code: 5, message: "there is nothing at /", details: [reasonDetail("PATH_NOT_FOUND")] },
      });
    }
  });

  test("an unknown path is a page for browsers that says where to look, and our error for programs", async () => {
    for (const path of ["/nothing", "/events/some-link"]) {
      const page = await get(path, html);
      expect(page).toMatchObject({
        status: 404,
        headers: { "content-type": "text/html; charset=utf-8", vary: "accept" },
      });
      for (const way of ["/console", "/docs"]) expect(page.body.toString()).toContain(`href="${way}"`);
      expect(JSON.parse((await get(path)).body.toString())).toMatchObject({ code: 5 });
      expect(JSON.parse((await get(path, html, "POST")).body.toString())).toMatchObject({ code: 5 });
    }
    expect((await get("/v1/nothing", { ...html, ...key })).headers["content-type"]).toBe("application/json");
  });

  test("HEAD has the headers of GET, and no body", async () => {
    for (const path of ["/", "/docs", "/docs/licences"]) {
      const [whole, head] = await Promise.all([get(path, html), get(path, html, "HEAD")]);
      const named = ["content-type", "content-length", "etag", "vary", "cache-control", "content-security-policy"];
      for (const name of named) expect(head.headers[name], `${path} ${name}`).toBe(whole.headers[name]);
      expect(head.body.byteLength).toBe(0);
    }
  });

  test("/docs/licences lists every package that runs, with its version and licence", async () => {
    const { headers, body } = await get("/docs/licences");
    expect(headers["content-type"]).toBe("text/html; charset=utf-8");
    const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as {
      dependencies: Record<string, string>;
    };
    for (const [name, installed] of Object.entries(dependencies)) {
      const row = `<td>${name.replaceAll("/", "&#x2F;")}</td><td>${installed}</td><td>`;
      expect(body.toString()).toContain(row);
    }
  });

  test("files of the pages are kept for ever under a name of their content, compressed as asked", async () => {
    const page = (await get("/docs")).body.toString();
    const names = [...page.matchAll(/(?:href|src)="(\/docs\/assets\/[^"]+)"/g)].map(([, name = ""]) => name);
    expect(names.length).toBeGreaterThanOrEqual(5);
    for (const name of names) {
      const file = await get(name);
      expect(file.status, name).toBe(200);
      expect(file.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
      const br = await get(name, { "accept-encoding": "br" });
      const gzip = await get(name, { "accept-encoding": "gzip" });
      if (file.body.byteLength < 1024) continue;
      expect(br.headers).toMatchObject({ "content-encoding": "br", vary: "accept-encoding" });
      expect(brotliDecompressSync(br.body).equals(file.body)).toBe(true);
      expect(gunzipSync(gzip.body).equals(file.body)).toBe(true);
      expect(new Set([file, br, gzip].map(({ headers }) => headers.etag)).size).toBe(3);
    }
  });

  test("what the client has already is 304", async () => {
    for (const [path, headers] of [
      ["/", html],
      ["/docs", {}],
      ["/docs", { "accept-encoding": "br" }],
    ] as const) {
      const { headers: told } = await get(path, headers);
      expect(told["cache-control"]).toBe("no-cache");
      const again = await get(path, { ...headers, "if-none-match": `"other", W/${told.etag}` });
      expect(again).toMatchObject({ status: 304, headers: { etag: told.etag } });
      expect(again.body.byteLength).toBe(0);
      expect(await get(path, { ...headers, "if-none-match": '"other"' })).toMatchObject({ status: 200 });
    }
  });
});

test("the certificate of the local authority is offered with its fingerprint, and only where there is one", async () => {
  const { ca = "" } = server.target;
  const target = { url: server.url, ca: join(temporaryDir(), "ca.pem") };
  copyFileSync(ca, target.ca);
  const file = await raw(server.target, "2", { method: "GET", path: "/ca.crt" });
  expect(file).toMatchObject({ status: 200, headers: { "content-type": "application/x-x509-ca-cert" } });
  expect(file.body.equals(readFileSync(ca))).toBe(true);
  const page = await raw(server.target, "2", { method: "GET", path: "/certificate" });
  expect(page.body.toString()).toContain(new X509Certificate(readFileSync(ca)).fingerprint256);
  for (const name of ["Linux", "macOS", "Windows", "Firefox"]) expect(page.body.toString()).toMatch(`>${name}</h2>`);
  // Another authority is offered without a new start.
  const { caFile = "" } = await certificate({
    tlsCert: undefined,
    tlsKey: undefined,
    dataDir: temporaryDir(),
    host: "localhost",
  });
  const other = readFileSync(caFile);
  writeFileSync(ca, other);
  const again = await raw(target, "2", { method: "GET", path: "/ca.crt" });
  expect(again.body.equals(other)).toBe(true);
  writeFileSync(ca, file.body);
  expect(await raw(plain.target, "1.1", { method: "GET", path: "/ca.crt" })).toMatchObject({ status: 404 });
  expect(await raw(plain.target, "1.1", { method: "GET", path: "/certificate" })).toMatchObject({ status: 404 });
  for (const [target, offered] of [
    [server.target, true],
    [plain.target, false],
  ] as const) {
    const { body } = await raw(target, "1.1", { method: "GET", path: "/", headers: html });
    expect(body.toString().includes('href="/certificate"')).toBe(offered);
  }
});

/** WCAG's contrast of two colours as browsers compute them; what is see-through counts as white. */
function contrast(one: string, other: string): number {
  const luminance = (colour: string) => {
    const [red = 0, green = 0, blue = 0, alpha = 1] = (colour.match(/[\d.]+/g) ?? []).map(Number);
    const parts = (alpha === 0 ? [255, 255, 255] : [red, green, blue]).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * (parts[0] ?? 0) + 0.7152 * (parts[1] ?? 0) + 0.0722 * (parts[2] ?? 0);
  };
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

describe("in Chromium", () => {
  const { onPage } = testBrowser();
  const { host } = new URL(server.url);

  /** Everything that the page asked for, and everything that it complained of. */
  function watched(page: Page) {
    const seen = { hosts: new Set<string>(), complaints: [] as string[] };
    page.on("request", (request) => seen.hosts.add(new URL(request.url()).host));
    page.on("pageerror", (error) => seen.complaints.push(String(error)));
    page.on("console", (message) => message.type() === "error" && seen.complaints.push(message.text()));
    return seen;
  }

  /** Presses Tab until what has the focus answers to this selector. */
  async function tabTo(page: Page, selector: string) {
    for (let i = 0; i < 60; i += 1) {
      await page.keyboard.press("Tab");
      if (await page.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)) return;
    }
    throw new Error(`${selector} is not reached by Tab`);
  }

  onPage("from / to a call that is answered, by keyboard alone", async (page) => {
    const seen = watched(page);
    await page.goto(server.url);
    expect(await page.locator("pre").first().textContent()).toContain(`${server.url}/v1/api-clients`);
    await tabTo(page, 'a[href="/docs"]');
    await page.keyboard.press("Enter");
    await page.waitForSelector(".opblock");

    await tabTo(page, ".btn.authorize");
    await page.keyboard.press("Enter");
    const drawn = { timeout: 20_000 };
    await expect.poll(() => page.evaluate("document.activeElement.matches('.dialog-ux input')"), drawn).toBe(true);
    for (let i = 0; i < 8; i += 1) {
      await page.keyboard.press("Tab");
      expect(await page.evaluate("document.activeElement.closest('.dialog-ux') !== null")).toBe(true);
    }
    await page.locator(".dialog-ux input").last().focus();
    await page.keyboard.type(key["service-api-key"] ?? "");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".dialog-ux .btn-done");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".dialog-ux", { state: "detached" });

    await page.keyboard.press("/");
    await page.keyboard.type("api-clients LISTapiclients");
    await expect.poll(() => page.locator(".opblock").count(), drawn).toBe(1);
    await tabTo(page, ".opblock-summary-control");
    await page.keyboard.press("Enter");
    await page.getByPlaceholder("pageSize").waitFor();
    await tabTo(page, ".execute");
    await page.keyboard.press("Enter");
    const answer = page.locator(".live-responses-table .response");
    await answer.waitFor();
    expect(await answer.textContent()).toMatch(/^200.*"name": "USER manager"/s);
    const command = await page.locator(".curl-command").textContent();
    expect(command).toContain("service-api-key: $KEY");
    expect(command).not.toContain(key["service-api-key"]);

    expect([...seen.hosts]).toEqual([host]);
    expect(seen.complaints).toEqual([]);
  });

  onPage(
    "parts stand in order, labels can be read, examples find what examples sent, a watch says how",
    async (page) => {
      await page.goto(`${server.url}/docs`);
      await page.waitForSelector(".opblock");
      const tags = await page.locator(".opblock-tag").evaluateAll((all) => all.map((tag) => tag.dataset.tag));
      expect(tags.slice(0, 3)).toEqual(["Data receiver", "Event query", "Event management"]);
      const pairs =
        (await page.evaluate(`[...new Set([".btn.authorize", ...["get", "post", "put", "delete"].map((m) => ".opblock-" + m + " .opblock-summary-method")])].map((name) => {
      let at = document.querySelector(name);
      const text = getComputedStyle(at).color;
      while (getComputedStyle(at).backgroundColor === "rgba(0, 0, 0, 0)" && at.parentElement !== null) at = at.parentElement;
      return [name, text, getComputedStyle(at).backgroundColor];
    })`)) as [string, string, string][];
      expect(pairs.length).toBe(5);
      for (const [name, text, ground] of pairs) expect(contrast(text, ground), name).toBeGreaterThanOrEqual(4.5);
      await page.evaluate(`window.localStorage.clear()`);
      await page.locator(".btn.authorize").click();
      await page
        .locator(".dialog-ux input")
        .last()
        .fill(key["service-api-key"] ?? "");
      await page.keyboard.press("Enter");
      await page.waitForSelector(".dialog-ux .btn-done");
      await page.keyboard.press("Escape");
      /** Executes the example of a call. */
      async function execute(operation: string) {
        const block = page.locator(`.opblock[id$="${operation}"]`);
        await block.locator(".opblock-summary-control").click();
        await block.locator(".execute").click();
        const answer = block.locator(".live-responses-table .response").first();
        await answer.waitFor();
        return (await answer.textContent()) ?? "";
      }
      expect(await execute("DataReceiverService_PutEvents")).toMatch(/^200.*"failed": 0/s);
      expect(await execute("EventQueryService_SearchEvents")).toMatch(/^200.*"name": "disk.full"/s);
      const watch = page.locator('.opblock[id$="EventQueryService_WatchEvents"]').first();
      await watch.locator(".opblock-summary-control").click();
      expect(await watch.locator(".no-execute").textContent()).toContain("curl");
      expect(await watch.locator(".execute").count()).toBe(0);
    },
  );

  onPage("a narrow window is not scrolled sideways", { viewport: { width: 360, height: 740 } }, async (page) => {
    for (const path of ["/", "/docs"]) {
      await page.goto(`${server.url}${path}`);
      if (path === "/docs") await page.locator(".opblock-summary-control").first().click();
      expect(await page.evaluate("document.documentElement.scrollWidth"), path).toBe(360);
    }
  });

  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

  /** Texts that have too little contrast for WCAG's AA, each once by its colours. */
  async function faint(page: Page): Promise<string[]> {
    await page.evaluate(axe);
    return (await page.evaluate(`axe.run({ runOnly: ["color-contrast"] }).then(({ violations }) => [...new Map(
    violations.flatMap(({ nodes }) => nodes).map(({ target, any: [check] }) => {
      const { fgColor, bgColor, contrastRatio } = check.data;
      return [fgColor + bgColor, target.join(" ") + ": " + fgColor + " on " + bgColor + ", " + contrastRatio];
    })).values()])`)) as string[];
  }

  for (const colorScheme of ["light", "dark"] as const)
    onPage(`what pages say can be read, ${colorScheme}`, { colorScheme }, async (page) => {
      const found: Record<string, string[]> = {};
      for (const path of ["/", "/certificate", "/docs/licences", "/missing", "/docs"]) {
        await page.goto(`${server.url}${path}`);
        if (path === "/docs") await page.waitForSelector(".opblock");
        found[path] = await faint(page);
      }
      await page.locator('.opblock[id$="EventQueryService_SearchEvents"] .opblock-summary-control').click();
      await page.locator(".execute").waitFor();
      found["a call"] = await faint(page);
      await page.locator(".btn.authorize").click();
      await page.locator(".dialog-ux input").last().waitFor();
      found["the dialog"] = await faint(page);
      expect(found).toEqual(Object.fromEntries(Object.keys(found).map((place) => [place, []])));
    });
});
