import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import type { Page, Request } from "playwright-core";
import { afterAll, describe, expect } from "vitest";
import { WatchEventsRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { atEnd } from "../support/at-end.ts";
import { testBrowser } from "../support/browser.ts";
import { raw } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { masterKeys, type TestServer, testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { openConsole, ordinaryDay, see, sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { sql } = server.database;
const { onPage } = testBrowser();

const rowOf = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });
const watches = (page: Page) => {
  let count = 0;
  page.on("request", (request) => {
    if (request.url().endsWith("/WatchEvents")) count += 1;
  });
  return () => count;
};

/** Another program of the host, at a port of its own with the host's certificate; it sends what it is asked on to the server, as `belfry`'s own page would. */
async function neighbour() {
  const dataDir = dirname(server.caFile ?? "");
  const [cert, key] = ["server.pem", "server-key.pem"].map((name) => readFileSync(join(dataDir, name)));
  const seen: { cookie: string | undefined; status: number }[] = [];
  const program = createServer({ cert, key }, async (request, response) => {
    response.setHeader("content-type", "text/html");
    if (request.url === "/") return response.end("<!doctype html><title>Another program</title>");
    const { cookie } = request.headers;
    const headers = { cookie: cookie ?? "", "sec-fetch-site": "same-origin", origin: server.url };
    const answer = await raw(server.target, "1.1", { method: "GET", path: request.url ?? "", headers });
    seen.push({ cookie, status: answer.status });
    response.end(answer.body);
  });
  await new Promise<void>((resolve) => program.listen(0, resolve));
  atEnd(async () => void program.close());
  const address = new URL(server.url);
  address.port = String((program.address() as AddressInfo).port);
  return { url: address.origin, seen };
}

describe("a program on another port of the host", () => {
  onPage("gets the cookie from the browser, and reads nothing with it, by itself or by its page", async (page) => {
    const tenant = await testTenant(sql);
    const { url, seen } = await neighbour();
    await openConsole(page, server, tenant);
    await page.getByText("Nothing is open.").waitFor();
    const theirs = await page.context().newPage();
    await theirs.goto(url);
    for (const path of ["/v1/console-sessions/current", "/v1/audit-log", "/v1/api-clients"])
      await theirs.evaluate(`fetch("${path}").then((answer) => answer.text())`);
    expect(seen.map(({ status }) => status)).toEqual([401, 401, 401]);
    for (const { cookie } of seen) expect(cookie).toMatch(/^__Host-belfry=bs_/);
    const fromTheirPage = await theirs.evaluate(`Promise.all([
      fetch("${server.url}/v1/audit-log", { credentials: "include" }).then(({ status }) => status, () => "not readable"),
      JSON.stringify({ ...localStorage }),
    ])`);
    expect(fromTheirPage).toEqual(["not readable", "{}"]);
    // Ours goes on: with a new call, in a new tab, and with a file of all that it lists.
    await sendEvents(server, tenant, [{ name: "ours", source: "a" }]);
    await rowOf(page, "ours").waitFor();
    const tab = await page.context().newPage();
    await tab.goto(`${server.url}/console/`);
    await rowOf(tab, "ours").waitFor();
    await tab.getByLabel("More of the list").click();
    const [file] = await Promise.all([
      tab.waitForEvent("download"),
      tab.getByRole("button", { name: "Export CSV" }).click(),
    ]);
    expect(readFileSync(await file.path(), "utf8")).toContain("ours");
  });

  onPage("whose own cookie takes the place of ours logs no one in", async (page) => {
    const [tenant, theirs] = [await testTenant(sql), await testTenant(sql)];
    await openConsole(page, server, tenant);
    const body = JSON.stringify({ key: theirs.headers["service-api-key"] });
    const headers = { "content-type": "application/json", "sec-fetch-site": "same-origin" };
    const made = await raw(server.target, "2", { path: "/v1/console-sessions", headers, body: [Buffer.from(body)] });
    const [value = ""] = made.headers["set-cookie"]?.[0]?.split("=").slice(1).join("=").split(";") ?? [];
    const { hostname } = new URL(server.url);
    const cookie = { name: "__Host-belfry", value, domain: hostname, path: "/", secure: true };
    await page.context().addCookies([{ ...cookie, httpOnly: true, sameSite: "Strict" }]);
    await page.reload();
    await page.getByRole("heading", { name: "Log in" }).waitFor();
  });
});

describe("one watch a browser", () => {
  onPage("one tab watches, the other hears it, and takes it over when that one is closed", async (page) => {
    const tenant = await testTenant(sql);
    const first = watches(page);
    await openConsole(page, server, tenant);
    await page.getByText("Live", { exact: true }).waitFor();
    const other = await page.context().newPage();
    const second = watches(other);
    await other.goto(`${server.url}/console/`);
    await other.getByText("Nothing is open.").waitFor();
    await sendEvents(server, tenant, [{ name: "heard", source: "a" }]);
    await rowOf(other, "heard").waitFor();
    expect([first(), second()]).toEqual([1, 0]);
    await page.close();
    await sendEvents(server, tenant, [{ name: "taken over", source: "a" }]);
    await rowOf(other, "taken over").waitFor();
    expect(second()).toBeGreaterThan(0);
  });

  onPage("it ends while its tab is hidden, and goes on at its cursor when the tab is in sight again", async (page) => {
    const tenant = await testTenant(sql);
    const cursors: string[] = [];
    let ended = 0;
    const isWatch = (request: Request) => request.url().endsWith("/WatchEvents");
    page.on("request", (request) => {
      // Five bytes of a stream's frame come before the message.
      const sent = request.postDataBuffer()?.subarray(5);
      if (isWatch(request)) cursors.push(fromBinary(WatchEventsRequestSchema, sent ?? new Uint8Array()).cursor);
    });
    page.on("requestfailed", (request) => {
      if (isWatch(request)) ended += 1;
    });
    await openConsole(page, server, tenant);
    await page.getByText("Live", { exact: true }).waitFor();
    await sendEvents(server, tenant, [{ name: "before", source: "a" }]);
    await rowOf(page, "before").waitFor();
    await see(page, "hidden");
    await expect.poll(() => ended).toBe(1);
    await sendEvents(server, tenant, [{ name: "meanwhile", source: "a" }]);
    expect(cursors).toEqual([""]);
    await see(page, "visible");
    await rowOf(page, "meanwhile").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    expect(cursors).toEqual(["", expect.stringMatching(/./)]);
  });

  onPage("a network that fails is said, what stands stays, and nothing is missed afterwards", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "before", source: "a" }]);
    await openConsole(page, server, tenant);
    await rowOf(page, "before").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await page.context().setOffline(true);
    await page.getByRole("link", { name: "Deliveries" }).click();
    await page
      .getByText(/The server does not answer/)
      .first()
      .waitFor();
    await sendEvents(server, tenant, [{ name: "meanwhile", source: "a" }]);
    await page.context().setOffline(false);
    await page.getByText("Nothing was sent yet.").waitFor();
    await page.getByRole("link", { name: "Events", exact: true }).click();
    await rowOf(page, "meanwhile").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
  });
});

/** Things of this name: a trigger, a destination, a rule that sends, a window that runs, a client. Returns the window's id. */
async function nameAll(call: ReturnType<typeof v1>, of: { name: string; description: string; entity: string }) {
  const { name, description, entity } = of;
  const tags = [description];
  const clause = { greaterAndEquals: { field: "severity", value: { numberVal: 1 } } };
  await call("/v1/notification/triggers", { name, description, tags, type: { event: { query: { clause } } } });
  const type = { webhook: { url: "https://hooks.example.invalid/" } };
  await call("/v1/notification/destinations", { name, description, tags, type });
  const joined = { enabled: true, triggerNames: [name], destinationNames: [name], message: description };
  await call("/v1/notification/rules", { name, description, tags, ...joined });
  await call("/v1/api-clients", { name, type: "DATA_INGEST" });
  const schedule = { start: Date.now(), duration: 3_600_000 };
  const query = { clause: { withIds: { ids: [entity] } } };
  const specification = { name, description, tags, owner: description, maintenanceState: 300, schedule, query };
  const { id } = await call("/v1/modelcontext/maintwindows", { specification });
  return encodeURIComponent(id);
}

describe("what agents and other people can set is text", () => {
  const scripts = [
    `<img src=x onerror="globalThis.ran=1">`,
    `<script>globalThis.ran=1</script>`,
    `"><svg onload=globalThis.ran=1>`,
    `javascript:globalThis.ran=1`,
    `{{constructor.constructor("globalThis.ran=1")()}}`,
  ];

  const on = "in every field, on every screen, no script runs and no rule of the page is broken";
  onPage(on, async (page) => {
    const tenant = await testTenant(sql);
    const hostile = scripts.join(" ");
    const name = hostile.slice(0, 200);
    const call = v1(server, tenant);
    const dimensions = { source: hostile, [hostile.slice(0, 60)]: hostile };
    const metadataFields = {
      [hostile.slice(0, 60)]: hostile,
      name: hostile,
      list: scripts,
      deep: { [scripts[0] ?? ""]: hostile },
    };
    const now = Date.now();
    await call("/v1/data-receiver/models", { models: [{ timestamp: now, dimensions, metadataFields }] });
    const body = {
      summary: scripts[0],
      body: hostile,
      type: scripts[1],
      dedupKey: scripts[2],
      status: "STATUS_OPEN",
      severity: "SEVERITY_ERROR",
    };
    const { failed } = await call("/v1/data-receiver/events", {
      events: [{ name, dimensions, timestamp: now, metadataFields, ...body }],
    });
    expect(failed).toBe(0);
    await call("/v1/data-receiver/metrics", {
      metrics: [0, 1, 2].map((at) => ({ metric: name, value: at, timestamp: now - at * 60_000, dimensions })),
    });
    const { results } = await call("/v1/events:search", { query: {} });
    const [{ id, entity, occurrences }] = results;
    const annotations = [{ eventId: id, occurrenceId: occurrences[0].id, annotation: hostile }];
    await call("/v1/event-management/annotate", { annotations });
    const window = await nameAll(call, { name, description: scripts[0] ?? "", entity });
    const broken: string[] = [];
    page.on("pageerror", ({ message }) => broken.push(message));
    page.on("dialog", (dialog) => broken.push(dialog.message()));
    await page.addInitScript(
      "document.addEventListener('securitypolicyviolation', (report) => { globalThis.reported = report.violatedDirective; })",
    );
    await openConsole(page, server, tenant);
    const of = encodeURIComponent(entity);
    const where = encodeURIComponent(
      JSON.stringify({ filter: { field: hostile.slice(0, 60), operation: "OP_EQUALS", value: hostile } }),
    );
    const screens = [
      "#/events?columns=metadataFields.list,metadataFields.deep",
      `#/events?status=any&where=${where}`,
      `#/occurrences/${encodeURIComponent(occurrences[0].id)}`,
      "#/entities?group=name",
      `#/entities/${of}`,
      `#/metrics?entity=${of}&range=1h`,
      `#/deliveries?rule=${encodeURIComponent(hostile)}`,
      ...["triggers", "destinations", "rules"].flatMap((section) => [
        `#/rules/${section}`,
        `#/rules/${section}/${encodeURIComponent(name)}`,
      ]),
      "#/rules/triggers?new=yes",
      "#/rules/rules?new=1",
      `#/rules/guide?destination=${encodeURIComponent(name)}`,
      ...["", `/${window}`, `/${window}?edit=1`].map((rest) => `#/windows${rest}`),
      ...["send", "keys", "accounts", "groups", "audit", "dictionary", "properties", "credentials"].map(
        (section) => `#/settings/${section}`,
      ),
      "#/settings/properties?new=1",
      `#/settings/${encodeURIComponent(hostile)}`,
      `#/${encodeURIComponent(hostile)}`,
    ];
    for (const hash of screens) {
      await page.goto(`${server.url}/console/${hash}`);
      await page.locator('main:not([aria-busy="true"])').waitFor();
      await page.getByRole("heading", { level: 1 }).first().waitFor();
    }
    await page.goto(`${server.url}/console/#/settings/send`);
    await page.getByRole("list", { name: "Newest of events" }).getByText(name, { exact: true }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByLabel("Find by name").fill("onerror");
    for (const kind of ["Entities", "Rules", "Triggers", "Destinations", "Maintenance"])
      await page.getByRole("group", { name: kind }).getByRole("option").first().waitFor();
    await page.keyboard.press("Escape");
    await page.goto(`${server.url}/console/${screens[2]}`);
    await page.getByText(hostile, { exact: true }).first().waitFor();
    const ran = await page.evaluate(
      "[globalThis.ran, globalThis.reported, document.querySelectorAll('main img, main script').length]",
    );
    expect([ran, broken]).toEqual([[undefined, undefined, 0], []]);
  });
});

describe("a server that is away", async () => {
  const database = await testDatabase();
  const dataDir = mkdtempSync(join(tmpdir(), "belfry-restart-"));
  afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

  const start = async (port: number) => {
    const config = readConfig({
      DATABASE_URL: database.url,
      BELFRY_DATA_DIR: dataDir,
      BELFRY_PORT: String(port),
      BELFRY_SHUTDOWN_TIMEOUT: "500ms",
      BELFRY_MASTER_KEYS: masterKeys,
    });
    const server = await startServer(config, openLog("silent"));
    return { ...server, database, target: { url: server.url, ca: server.caFile } };
  };

  onPage("a server that is started again finds the session, and the list goes on by itself", async (page) => {
    const first = await start(0);
    const port = Number(new URL(first.url).port);
    const tenant = await testTenant(database.sql);
    await openConsole(page, first, tenant);
    await page.getByText("Live", { exact: true }).waitFor();
    await first.stop();
    await page.getByText("Not live: waiting for the server").waitFor();
    const second = await start(port);
    try {
      await sendEvents(second, tenant, [{ name: "after the restart", source: "a" }]);
      await page.getByRole("row").filter({ hasText: "after the restart" }).waitFor();
      await page.getByText("Live", { exact: true }).waitFor();
    } finally {
      await second.stop();
    }
  });

  onPage("a server that is away leaves what was shown where one comes back to it; one bar says it", async (page) => {
    const first = await start(0);
    const port = Number(new URL(first.url).port);
    const tenant = await testTenant(database.sql);
    // Otherwise the code of all screens comes after three seconds: a slow machine would have it before the server is away.
    await page.addInitScript(
      "const later = setTimeout; setTimeout = (act, ms, ...rest) => (ms === 3000 ? 0 : later(act, ms, ...rest));",
    );
    await openConsole(page, first, tenant);
    await sendEvents(first, tenant, [{ name: "before it went", source: "a" }]);
    const row = page.getByRole("row").filter({ hasText: "before it went" });
    const go = (name: string) => page.getByRole("link", { name, exact: true }).click();
    const entity = page.getByRole("grid", { name: "Entities" }).getByRole("row").nth(1);
    await row.waitFor();
    await go("Entities");
    await entity.waitFor();
    await first.stop();
    await go("Events");
    await page.getByText(/^The server does not answer\. What is shown is from \S+ \S+ or before/).waitFor();
    await row.waitFor();
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    await go("Entities");
    await entity.waitFor();
    // Its code was not loaded before.
    await go("Rules");
    await page.getByText("The screen opens as soon as it does.").waitFor();
    expect(await page.getByRole("button", { name: "Load the page again" }).count()).toBe(0);
    await go("Events");
    await row.waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    const second = await start(port);
    try {
      await sendEvents(second, tenant, [{ name: "after it came", source: "a" }]);
      await page.getByRole("row").filter({ hasText: "after it came" }).waitFor();
      await go("Rules");
      await page.getByRole("heading", { name: "Rules", exact: true }).waitFor();
    } finally {
      await second.stop();
    }
  });

  /** Forms that are filled while the server answers and saved while it does not, the call that answers what was saved, and what is said of it. */
  const forms = [
    {
      what: "a rule",
      hash: () => "#/rules/rules/page%20on%20critical",
      field: "Message",
      send: "Save",
      stored: ["GET", "/v1/notification/rules/page%20on%20critical"],
      said: /^The rule .* was changed\.$/,
    },
    {
      what: "a destination",
      hash: () => "#/rules/destinations/on%20call",
      field: "Address",
      send: "Save",
      stored: ["GET", "/v1/notification/destinations/on%20call"],
      said: /^The destination .* was changed\.$/,
    },
    {
      what: "a window",
      hash: ({ window }: Ids) => `#/windows/${window}?edit=1`,
      field: "Description",
      send: "Save the window",
      stored: ["POST", "/v1/modelcontext/maintwindows:list"],
      said: /^The window .* was changed\.$/,
    },
    {
      what: "a silence",
      hash: ({ occurrence }: Ids) => `#/silences/new?occurrence=${occurrence}`,
      field: "Comment",
      send: "Silence",
      stored: ["GET", "/v1/notification/silences"],
      said: "Silence created.",
    },
  ] as const;
  const typed = "https://hooks.example.invalid/night";

  interface Ids {
    readonly window: string;
    readonly occurrence: string;
  }

  /** A window and an occurrence beside what there is on an ordinary day. */
  async function somethingOfAll(server: TestServer, tenant: TestTenant): Promise<Ids> {
    await ordinaryDay(server, tenant);
    const call = v1(server, tenant);
    const webs = { clause: { filter: { field: "name", operation: "OP_STARTS_WITH", value: "web-" } } };
    const schedule = { start: Date.now() + 3_600_000, duration: 3_600_000 };
    const specification = { name: "Patch night", schedule, maintenanceState: 300, query: webs };
    const { id: window } = await call("/v1/modelcontext/maintwindows", { specification });
    const clause = { filter: { field: "name", operation: "OP_EQUALS", value: "disk full" } };
    const { results } = await call("/v1/events:search", { query: { clause } });
    return { window, occurrence: encodeURIComponent(results[0].occurrences[0].id) };
  }

  onPage("forms say once that the server is silent, keep what was typed, and save it once it is back", async (page) => {
    let server = await start(0);
    const port = Number(new URL(server.url).port);
    const tenant = await testTenant(database.sql);
    const ids = await somethingOfAll(server, tenant);
    await openConsole(page, server, tenant);
    for (const { what, hash, field, send, said, stored } of forms) {
      await page.goto(`${server.url}/console/${hash(ids)}`);
      const button = page.getByRole("button", { name: send, exact: true });
      const form = page.locator("form").filter({ has: button });
      const input = form.getByLabel(field, { exact: true });
      await button.waitFor();
      if (!(await input.isVisible())) await form.locator("summary").filter({ hasText: "More" }).click();
      await input.fill(typed);
      await server.stop();
      await button.click();
      await form.getByRole("alert").getByText("this may not have been done").waitFor();
      expect(await page.getByRole("alert").count(), what).toBe(1);
      // Beside the form the frame alone says that what is shown is old.
      expect(await page.getByText(/server (?:does|did) not answer/i).count(), what).toBe(2);
      expect(await input.inputValue(), what).toBe(typed);
      server = await start(port);
      await page.getByText("Live", { exact: true }).waitFor();
      expect(await input.inputValue(), what).toBe(typed);
      await button.click();
      await page.getByText(said).waitFor();
      const [method, path] = stored;
      const headers = { ...tenant.headers, ...(method === "POST" && { "content-type": "application/json" }) };
      const asked = { method, path, headers, ...(method === "POST" && { body: [Buffer.from("{}")] }) };
      const answer = async () => (await raw(server.target, "2", asked)).body.toString();
      await expect.poll(answer, { message: what, timeout: 30_000 }).toContain(typed);
    }
    await server.stop();
  });
});
