import { beforeAll, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { ordinaryDay, sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";
import { someWindows } from "./some-windows.ts";

const server = await testServer();
const { sql } = server.database;
const tenant = await testTenant(sql);
const { onPage } = domPage(server);
beforeAll(() => ordinaryDay(server, tenant));

const hosts = await testTenant(sql);
/** The newest buckets of an hour are of 15 seconds. */
const at = Math.floor(Date.now() / 15_000) * 15_000 - 15_000;
beforeAll(async () => {
  const names = Array.from({ length: 13 }, (_, n) => `host-${String(n).padStart(2, "0")}`);
  const call = v1(server, hosts);
  const models = names.map((source) => ({
    timestamp: at,
    dimensions: { source },
    metadataFields: { name: source, source_type: "host" },
  }));
  await call("/v1/data-receiver/models", { models });
  const metrics = names.flatMap((source, n) =>
    ["sda", "sdb"].flatMap((device) =>
      ["node_disk_busy", "node_disk_reads"].map((metric) => ({
        metric,
        timestamp: at,
        labels: { device, kind: "ssd" },
        dimensions: { source },
        value: n + (device === "sdb" ? 0.5 : 0),
      })),
    ),
  );
  await call("/v1/data-receiver/metrics", { metrics });
});

const plots = (page: DomPage) => page.getByRole("application");
const lines = (page: DomPage, name: string | RegExp) => page.getByRole("table", { name }).locator("tbody tr");

onPage("of an entity are a plot each, read by keyboard and as tables", async (page) => {
  await page.logIn(tenant, "#/metrics");
  await page.getByRole("combobox", { name: "Entity" }).fill("web-1");
  await page.getByRole("option", { name: "web-1" }).waitFor();
  await page.getByRole("combobox", { name: "Entity" }).press("Enter");
  await page.getByText("3 series in 3 plots").waitFor();
  const plot = page.getByRole("application", { name: /CPU utilization/ });
  await plot.focus();
  await plot.press("End");
  await page.getByText(/CPU utilization: [\d.]+ %/).waitFor();
  await page.getByLabel("Aggregator").selectOption("MAX");
  await page.getByRole("button", { name: "Values as tables" }).click();
  await page
    .getByRole("grid", { name: /Values of CPU utilization/ })
    .getByText(/%$/)
    .first()
    .waitFor();
});

onPage("of entities that meet conditions are one plot a metric, by what sets the series apart", async (page) => {
  await page.logIn(hosts, "#/metrics");
  await page.getByRole("button", { name: "Conditions" }).click();
  const conditions = page.getByRole("form", { name: "Conditions" });
  await conditions.getByLabel("Field").fill("name");
  await conditions.getByLabel("Comparison").selectOption("regex");
  await conditions.getByLabel("Value", { exact: true }).fill("host-(");
  await conditions.getByRole("button", { name: "Apply" }).click();
  await conditions.getByRole("alert").waitFor();
  await conditions.getByLabel("Comparison").selectOption("starts");
  await conditions.getByLabel("Value", { exact: true }).fill("host-0");
  await conditions.getByRole("button", { name: "Apply" }).click();
  await page.getByText("40 series in 2 plots").waitFor();
  await page.getByRole("link", { name: "10 entities" }).waitFor();
  const busy = /^Series of node_disk_busy, kind=ssd$/;
  const [first] = lines(page, busy).all();
  expect(await first?.locator("th").textContent()).toBe(" host-09 · device=sdb");
});

onPage("draw the ten greatest of a plot; the others come when they are asked for", async (page) => {
  await page.logIn(hosts, "#/metrics?metric=node_disk_busy");
  const told = () =>
    lines(page, /^Series of node_disk_busy/)
      .all()
      .map((line) => line.allTextContents()[0]?.replace(/^ | ·.*$/g, ""));
  await eventually(told).toEqual(["12", "12", "11", "11", "10", "10", "09", "09", "08", "08"].map((n) => `host-${n}`));
  await page.getByRole("button", { name: "and 16 more" }).click();
  await eventually(() => told().length).toBe(20);
  await page.getByRole("button", { name: "and 6 more" }).click();
  await eventually(() => told().length).toBe(26);
});

onPage("are divided into a plot for each entity or value of a label, the greatest first", async (page) => {
  await page.logIn(hosts, "#/metrics?metric=node_disk_busy");
  await page.getByLabel("Plots", { exact: true }).selectOption("entity");
  await page.getByText("26 series in 13 plots").waitFor();
  expect(await plots(page).first().getAttribute("aria-label")).toContain("host-12, node_disk_busy · kind=ssd");
  await page.getByLabel("Plots", { exact: true }).selectOption("label:device");
  await page.getByText("26 series in 2 plots").waitFor();
  expect(await plots(page).first().getAttribute("aria-label")).toContain("sdb, node_disk_busy");
  await page.reload();
  await page.getByText("26 series in 2 plots").waitFor();
});

onPage("are found by how a metric's name begins, unless one is called exactly so", async (page) => {
  await page.logIn(hosts, "#/metrics");
  const metric = page.getByLabel("Metric", { exact: true });
  const find = async (text: string) => {
    await metric.fill(text);
    await metric.press("Enter");
  };
  await find("node_dis");
  await page.getByText("52 series in 2 plots").waitFor();
  await find("node_disk_reads");
  await page.getByText("26 series in 1 plot.").waitFor();
  await find("node_net");
  await page.getByText("No series has a value in this time.").waitFor();
  const call = v1(server, hosts);
  const more = { timestamp: at, dimensions: { source: "host-00" }, value: 1 };
  await call("/v1/data-receiver/metrics", {
    metrics: ["queue", "queue_age"].map((name) => ({ ...more, metric: name })),
  });
  await find("queue");
  await page.getByText("1 series in 1 plot.").waitFor();
});

onPage("of a line in the legend stand out while it is pointed at, and alone once it is pressed", async (page) => {
  await page.logIn(hosts, "#/metrics?metric=node_disk_busy&by=entity");
  const [sdb, sda] = ["sdb", "sda"].map((device) =>
    lines(page, /^Series of host-12/).filter({ hasText: `device=${device}` }),
  );
  const button = sdb?.getByRole("button");
  await button?.focus();
  await eventually(() => [sdb, sda].map((line) => line?.and(page.locator("[data-lifted]")).count())).toEqual([1, 0]);
  const plot = page.getByRole("application", { name: /host-12/ });
  const drawn = async () => {
    await plot.press("End");
    return [/^device=sdb: /, /^device=sda: /].map((text) => page.getByText(text).count());
  };
  await eventually(drawn).toEqual([1, 1]);
  await button?.click();
  await eventually(drawn).toEqual([1, 0]);
  await page.reload();
  await eventually(drawn).toEqual([1, 0]);
  await button?.click();
  await eventually(drawn).toEqual([1, 1]);
});

onPage("of an entity show when events began, the windows that hold it, and single ones that are over", async (page) => {
  const own = await testTenant(sql);
  const call = v1(server, own);
  const dimensions = { source: "web-1" };
  const models = ["web-1", "web-2"].map((source) => ({
    timestamp: at,
    dimensions: { source },
    metadataFields: { name: source, source_type: "host" },
  }));
  await call("/v1/data-receiver/models", { models });
  await call("/v1/data-receiver/metrics", {
    metrics: [0, 60_000].map((ago) => ({ metric: "load", timestamp: at - ago, dimensions, value: 3 })),
  });
  const sent = { source: "web-1", severity: Severity.CRITICAL };
  await sendEvents(server, own, [
    { ...sent, name: "disk full", timestamp: BigInt(at) },
    { ...sent, name: "of another", source: "web-2" },
    { ...sent, name: "before", timestamp: BigInt(at - 90_000_000) },
  ]);
  const short = async (name: string, value: string) => {
    const query = { clause: { filter: { field: "name", operation: "OP_EQUALS", value } } };
    const schedule = { start: Date.now(), duration: 1000 };
    await call("/v1/modelcontext/maintwindows", { specification: { name, schedule, maintenanceState: 300, query } });
  };
  await short("Firmware", "web-1");
  await short("Of another", "web-2");
  const { running } = await someWindows(server, own);
  const over = { filter: { field: "runState", operation: "OP_EQUALS", value: "COMPLETED" } };
  const ended = async () => {
    const search = { search_input: { query: { clause: over } } };
    return (await call("/v1/modelcontext/maintwindows:search", search)).maintWindows.length;
  };
  await eventually(ended).toBe(2);
  const clause = { filter: { field: "name", operation: "OP_EQUALS", value: "web-1" } };
  const { entities } = await call("/v1/modelcontext/entities:search", { search_input: { query: { clause } } });
  await page.logIn(own, `#/metrics?entity=${encodeURIComponent(entities.entities[0].id)}`);
  const marked = page.getByRole("list", { name: "Marked on the plots" });
  await marked.getByRole("link", { name: "disk full" }).waitFor();
  const window = marked.getByRole("link", { name: "Maintenance: Move of the data centre" });
  expect(await window.getAttribute("href")).toBe(`#/windows/${running}`);
  await marked.getByRole("link", { name: "Planned maintenance: Firmware" }).waitFor();
  expect(marked.getByRole("link").count()).toBe(3);
  const plot = page.getByRole("application", { name: /load/ });
  const told = async () => {
    await plot.press("End");
    const load = page.getByRole("region", { name: "load" });
    return ["disk full", "Maintenance: Move"].map((text) => load.getByText(text).count());
  };
  await eventually(told).toEqual([1, 0]);
});

onPage("of an entity's and an occurrence's page are marked by what happened then, too", async (page) => {
  const own = await testTenant(sql);
  const call = v1(server, own);
  // The start of the newest bucket on either page: there the cursor is at the end.
  const at = Math.floor((Date.now() - 15_000) / 300_000) * 300_000;
  const metrics = [0, 60_000].map((ago) => ({
    metric: "load",
    timestamp: at - ago,
    dimensions: { source: "web-1" },
    value: 3,
  }));
  await call("/v1/data-receiver/metrics", { metrics });
  const sent = { source: "web-1", severity: Severity.CRITICAL };
  await sendEvents(server, own, [
    { ...sent, name: "disk full", timestamp: BigInt(at) },
    { ...sent, name: "link down", timestamp: BigInt(at) },
    { ...sent, name: "of another", source: "web-2", timestamp: BigInt(at) },
  ]);
  const { results } = await call("/v1/events:search", { query: {} });
  const full = results.find(({ name }: { name: string }) => name === "disk full");
  const told = async (region: string) => {
    const plot = page.getByRole("region", { name: region });
    await plot.getByRole("application", { name: /load/ }).press("End");
    return ["disk full", "link down", "of another", "its start"].map((text) =>
      plot.getByText(text, { exact: true }).count(),
    );
  };
  await page.logIn(own, `#/entities/${encodeURIComponent(full.entity)}`);
  await page.getByRole("application", { name: /load/ }).waitFor();
  await eventually(() => told("Series of the last 6 hours")).toEqual([1, 1, 0, 0]);
  await page.goto(`#/occurrences/${full.occurrences[0].id}`);
  await page.getByRole("heading", { level: 1, name: "disk full" }).waitFor();
  await page.getByRole("application", { name: /load/ }).waitFor();
  await eventually(() => told("Metrics of the entity around its start")).toEqual([0, 1, 0, 1]);
});

onPage("say how old a last value is that nothing followed; of a range that is over, as of its end", async (page) => {
  const own = await testTenant(sql);
  const call = v1(server, own);
  const now = Date.now();
  const dimensions = { source: "web-1" };
  const sent = (metric: string, fromMs: number, toMs: number) =>
    Array.from({ length: (toMs - fromMs) / 60_000 }, (_, n) => ({
      metric,
      timestamp: now - fromMs - n * 60_000,
      dimensions,
      value: 7,
    }));
  await call("/v1/data-receiver/metrics", {
    metrics: [...sent("ended", 1_500_000, 2_400_000), ...sent("goes.on", 0, 2_400_000)],
  });
  const clause = { filter: { field: "id", operation: "OP_EXISTS" } };
  const { entities } = await call("/v1/modelcontext/entities:search", { search_input: { query: { clause } } });
  const entity = entities.entities[0].id as string;
  const said = (metric: string) =>
    page
      .getByRole("region", { name: metric })
      .getByText(/^2[5-7]m ago$/)
      .count();
  await page.logIn(own, `#/metrics?entity=${encodeURIComponent(entity)}`);
  await page.getByText("2 series in 2 plots").waitFor();
  expect([said("ended"), said("goes.on")]).toEqual([1, 0]);
  await page.goto(`#/entities/${encodeURIComponent(entity)}`);
  const figures = page.getByRole("region", { name: "Series of the last 6 hours" }).locator("figcaption");
  await figures.first().waitFor();
  expect(figures.filter({ hasText: "ended" }).filter({ hasText: "ago" }).count()).toBe(1);
  expect(figures.filter({ hasText: "goes.on" }).filter({ hasText: "ago" }).count()).toBe(0);
  await page.goto(
    `#/metrics?entity=${encodeURIComponent(entity)}&metric=ended&range=${now - 3_600_000}-${now - 1_500_000}`,
  );
  await page.getByText("1 series in 1 plot").waitFor();
  expect(page.locator("main").getByText(/ago$/).count()).toBe(0);
});

/** A tenant with many entities of one name, whose series all have the value 1, but for those of `outliers`. */
async function withMany(count: number, outliers: readonly number[], queues: readonly string[] = ["a"]) {
  const many = await testTenant(sql);
  const sources = Array.from({ length: count }, (_, n) => ({ timestamp: at, dimensions: { source: `s${n}` } }));
  const call = v1(server, many);
  const models = sources.map((each) => ({ ...each, metadataFields: { name: "eth0", source_type: "interface" } }));
  await call("/v1/data-receiver/models", { models });
  const metrics = sources.flatMap((each, n) =>
    queues.map((queue) => ({
      ...each,
      metric: "queue.length",
      labels: { queue },
      value: outliers.includes(n) ? 90 + n : 1,
    })),
  );
  await call("/v1/data-receiver/metrics", { metrics });
  return many;
}

onPage("of more entities than are read at once draw the greatest; equal names have dimensions", async (page) => {
  const many = await withMany(120, [0, 60, 119]);
  await page.logIn(many, "#/metrics?metric=queue.length");
  await page.getByText("120 series in 1 plot.").waitFor();
  const listed = lines(page, /^Series of queue.length/);
  expect(listed.filter({ hasText: /eth0 \(source=s\d+\)/ }).count()).toBe(10);
  expect(listed.allTextContents().slice(0, 3)).toEqual(
    [119, 60, 0].map((n) => expect.stringContaining(`(source=s${n})`)),
  );
});

onPage("of more series than one chooses from are those of the greatest values; the page says so", async (page) => {
  const outliers = [3, 17, 30, 44, 59];
  const many = await withMany(60, outliers, ["a", "b", "c", "d", "e"]);
  await page.logIn(many, "#/metrics?metric=queue.length&by=label%3Aqueue");
  await page.getByText("200 of 300 series, those with the greatest values of each metric, in 5 plots.").waitFor();
  for (const n of outliers) {
    const listed = lines(page, /^Series of/).filter({ hasText: `(source=s${n})` });
    expect(listed.count(), `s${n}`).toBe(5);
  }
});

onPage("of more entities than are compared are not left out in silence", async (page) => {
  const many = await withMany(310, []);
  await page.logIn(many, "#/metrics?metric=queue.length");
  await page.getByText("of 310 entities, of which the first 300 were compared").waitFor();
  await page
    .getByText("200 of 300 or more series, those with the greatest values of each metric, in 1 plot.")
    .waitFor();
});
