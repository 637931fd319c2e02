import chromium from "@sparticuz/chromium";
import { type Browser, type Page, chromium as playwright } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { raw } from "../support/clients.ts";
import { temporaryDir } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import type { Program } from "./page.ts";
import { pageServer } from "./page-server.ts";

const pagePort = await pageServer();
const origin = `http://127.0.0.1:${pagePort}`;
const server = await testServer({ BELFRY_PLAINTEXT: "0", BELFRY_CORS_ORIGINS: origin });
const { headers } = await testTenant(server.database.sql);

let browser: Browser | undefined;
let missing = "";

// It unpacks Chromium; the folder goes with the run, so that no other run sees half of it.
beforeAll(async () => {
  const { TMPDIR } = process.env;
  process.env.TMPDIR = temporaryDir();
  chromium.setGraphicsMode = false;
  try {
    browser = await playwright.launch({ executablePath: await chromium.executablePath(), args: ["--no-sandbox"] });
  } catch (error) {
    missing = `Chromium does not run here: ${String(error).split("\n", 1)[0]}`;
  }
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
}, 120_000);
afterAll(() => browser?.close());

/** Runs a test on a page of an origin; passes over it, and says why, where there is no Chromium. */
function onPage(name: string, from: string, body: (page: Page) => Promise<void>) {
  test(name, { timeout: 60_000 }, async ({ skip }) => {
    if (browser === undefined) return skip(missing);
    // The certificate is of a local CA; CORS is judged as everywhere.
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const page = await context.newPage();
    await page.goto(from);
    await page.waitForFunction(() => "program" in globalThis);
    await body(page);
    await context.close();
  });
}

type Tour = [protocol: "connect" | "grpc-web", binary: boolean];

const tour = (page: Page, [protocol, binary]: Tour, key = headers) =>
  page.evaluate(
    ({ url, key, protocol, binary }) =>
      (globalThis as unknown as { program: Program }).program.tour(url, key, protocol, binary),
    { url: server.url, key, protocol, binary },
  );

const json = (page: Page, method: string, path: string, body?: string, key: Record<string, string> = headers) =>
  page.evaluate(
    ({ url, key, method, path, body }) =>
      (globalThis as unknown as { program: Program }).program.json(url, key, method, path, body),
    { url: server.url, key, method, path, body },
  );

describe("a program on a page of a configured origin", () => {
  const tours: Tour[] = [
    ["connect", false],
    ["connect", true],
    ["grpc-web", true],
  ];
  for (const way of tours) {
    const [protocol, binary] = way;
    const name = `${protocol}, ${binary ? "binary" : "JSON"}`;
    onPage(`${name}: calls, and reads what is wrong`, origin, async (page) => {
      const names = expect.arrayContaining([`seen over ${protocol}`]);
      expect(await tour(page, way)).toEqual({ succeeded: 1, names, broken: ["query"] });
    });

    onPage(`${name}: reads why its key is refused`, origin, async (page) => {
      const message = expect.stringContaining("mistyped");
      expect(await tour(page, way, { "service-api-key": "bf_nonsense" })).toEqual({ code: "Unauthenticated", message });
    });
  }

  onPage("calls /v1 with every method, and reads request ids and errors", origin, async (page) => {
    const made = await json(page, "POST", "/v1/api-clients", '{"name":"page","type":"DATA_INGEST"}');
    expect(made).toMatchObject({ status: 200, requestId: expect.stringMatching(/./) });
    const path = `/v1/api-clients/${made.body.apiClient.id}`;
    expect(await json(page, "GET", path)).toMatchObject({ status: 200, body: { apiClient: { name: "page" } } });
    expect(await json(page, "DELETE", path)).toMatchObject({ status: 200 });
    expect(await json(page, "GET", path)).toMatchObject({ status: 404, body: { code: 5 } });
    expect(await json(page, "PATCH", path)).toMatchObject({ status: 501, body: { code: 12 } });
    expect(await json(page, "GET", "/v1/nothing")).toMatchObject({ status: 404, body: { code: 5 } });
    expect(await json(page, "GET", "/nothing")).toMatchObject({ status: 404, body: { code: 5 } });
    expect(await json(page, "GET", path, undefined, {})).toMatchObject({ status: 401, body: { code: 16 } });
  });
});

test("what caches are told stands beside what compression tells them", async () => {
  const event = (i: number) => ({ name: `event ${i}`, timestamp: Date.now(), dimensions: { source: "cache" } });
  const ask = (path: string, body: object) => {
    const wanted = { ...headers, origin, "content-type": "application/json", "accept-encoding": "gzip" };
    return raw(server.target, "2", { path, headers: wanted, body: [Buffer.from(JSON.stringify(body))] });
  };
  await ask("/v1/data-receiver/events", { events: Array.from({ length: 20 }, (_, i) => event(i)) });
  const { headers: told } = await ask("/v1/events:search", { query: {} });
  expect(told).toMatchObject({ "content-encoding": "gzip", "access-control-allow-origin": origin });
  expect(told.vary).toBe("Origin, accept-encoding");
});

describe("a page of another origin", () => {
  // The same machine under another name is another origin.
  const foreign = `http://localhost:${pagePort}`;

  onPage("is refused by the browser, and nothing is done", foreign, async (page) => {
    const answer = await json(page, "POST", "/v1/api-clients", '{"name":"foreign","type":"DATA_INGEST"}');
    expect(answer.refused).toContain("Failed to fetch");
    const [row] = await server.database.sql`select count(*)::int4 as made from api_clients where name = 'foreign'`;
    expect(row?.made).toBe(0);
    expect((await tour(page, ["connect", false])).message).toContain("Failed to fetch");
  });
});
