import { readFileSync } from "node:fs";
import { createClient } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { testBrowser } from "../support/browser.ts";
import { raw, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import type { Format } from "./official-grpc-web.ts";
import type { Program } from "./page.ts";
import { pageServer } from "./page-server.ts";

const pagePort = await pageServer();
const origin = `http://127.0.0.1:${pagePort}`;
const server = await testServer({ BELFRY_PLAINTEXT: "0", BELFRY_CORS_ORIGINS: origin });
const { headers } = await testTenant(server.database.sql);

const browser = testBrowser();

/** Runs a test on a page of an origin. */
function onPage(name: string, from: string, body: (page: Page) => Promise<void>) {
  browser.onPage(name, async (page) => {
    await page.goto(from);
    await page.waitForFunction(() => "program" in globalThis);
    await body(page);
  });
}

type Tour = [protocol: "connect" | "grpc-web", binary: boolean];

const tours: Tour[] = [
  ["connect", false],
  ["connect", true],
  ["grpc-web", false],
  ["grpc-web", true],
];

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

const receiver = createClient(DataReceiverService, transport(server.target, "connect", headers));
const put = (name: string) =>
  receiver.putEvents({ events: [{ name, dimensions: { source: "watched" }, timestamp: BigInt(Date.now()) }] });

/** Returns what `body` answers on the page. Events of these names happen once it watches. */
async function told<T>(page: Page, names: string[], body: () => Promise<T>): Promise<T> {
  const answer = body();
  await page.waitForFunction(() => (globalThis as { watching?: boolean }).watching === true);
  for (const name of names) await put(name);
  return await answer;
}

describe("a program on a page of a configured origin", () => {
  for (const way of tours) {
    const [protocol, binary] = way;
    const name = `${protocol}, ${binary ? "binary" : "JSON"}`;
    onPage(`${name}: calls, and reads what is wrong`, origin, async (page) => {
      const names = expect.arrayContaining([`seen over ${protocol}`]);
      const broken = { code: "InvalidArgument", message: expect.stringContaining("query: "), fields: ["query"] };
      const brokenStream = {
        ...broken,
        message: expect.stringContaining("cursor: "),
        fields: ["cursor"],
      };
      expect(await tour(page, way)).toEqual({ succeeded: 1, names, broken, brokenStream });
    });

    onPage(`${name}: reads why its key is refused, in a call and in a stream`, origin, async (page) => {
      const refused = { code: "Unauthenticated", message: expect.stringContaining("mistyped"), fields: [] };
      expect(await tour(page, way, { "service-api-key": "bf_nonsense" })).toEqual({ ...refused, stream: refused });
    });
  }

  for (const binary of [false, true]) {
    onPage(`Connect, ${binary ? "binary" : "JSON"}: reads by GET, writes by POST`, origin, async (page) => {
      const read = await page.evaluate(
        ({ url, headers, binary }) =>
          (globalThis as unknown as { program: Program }).program.reads(url, headers, binary),
        { url: server.url, headers, binary },
      );
      expect(read).toMatchObject({
        methods: ["GET", "GET", "POST"],
        results: expect.any(Number),
        broken: { code: "InvalidArgument", fields: ["query"] },
        put: { message: "0 of 0 events processed" },
      });
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

describe("a watch on a page", () => {
  for (const [protocol, binary] of tours) {
    const way = `${protocol}, ${binary ? "binary" : "JSON"}`;
    onPage(`${way}: tells what happens, and goes on behind its cursor`, origin, async (page) => {
      const names = [1, 2, 3].map((i) => `${way} ${i}`);
      const seen = await told(page, names, () =>
        page.evaluate(
          ({ url, headers, protocol, binary, until }) =>
            (globalThis as unknown as { program: Program }).program.watch(url, headers, protocol, binary, until),
          { url: server.url, headers, protocol, binary, until: names[2] as string },
        ),
      );
      expect(seen).toEqual(names);
    });
  }

  onPage("tells by server-sent events", origin, async (page) => {
    const { type, text } = await told(page, ["sent"], () =>
      page.evaluate(
        ({ url, headers }) => (globalThis as unknown as { program: Program }).program.serverSent(url, headers, "sent"),
        { url: server.url, headers },
      ),
    );
    expect(type).toMatch(/^text\/event-stream/);
    expect(text).toMatch(
      /^data: ?\{"result":\{"change":"CHANGE_UNSPECIFIED".*\n\ndata: ?\{"result":\{"change":"CREATED"/s,
    );
  });

  onPage("tells by the function of docs/events.md", origin, async (page) => {
    const [, code] = /```js\n(async function watch\(.*?)```/s.exec(readFileSync("docs/events.md", "utf8")) ?? [];
    await page.evaluate(`globalThis.watchOfDocs = ${code}`);
    const results = await told(page, ["a line", "another line"], () =>
      page.evaluate(
        ({ url, key }) =>
          new Promise<{ change: string; event?: { name: string } }[]>((resolve, reject) => {
            const seen: { change: string; event?: { name: string } }[] = [];
            type Record = { result: { change: string; event?: { name: string } } };
            type Watch = (url: string, key: string, query: object, tell: (record: Record) => void) => Promise<void>;
            const tell = ({ result }: Record) => {
              Object.assign(globalThis, { watching: true });
              seen.push(result);
              if (result.event?.name === "another line") resolve(seen);
            };
            const { watchOfDocs } = globalThis as unknown as { watchOfDocs: Watch };
            watchOfDocs(url, key, { severities: ["SEVERITY_DEFAULT"] }, tell).catch(reject);
          }),
        { url: server.url, key: headers["service-api-key"] ?? "" },
      ),
    );
    expect(results.map(({ change, event }) => [change, event?.name])).toEqual([
      ["CHANGE_UNSPECIFIED", undefined],
      ["CREATED", "a line"],
      ["CREATED", "another line"],
    ]);
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
  expect(told.vary?.toLowerCase()).toBe("origin, accept-encoding");
});

describe("the official gRPC-Web client", () => {
  const formats: Format[] = ["text", "binary"];

  for (const format of formats) {
    onPage(`${format}: calls, and reads what is wrong`, origin, async (page) => {
      const seen = await page.evaluate(
        ({ url, headers, format }) =>
          (globalThis as unknown as { program: Program }).program.officialTour(url, headers, format),
        { url: server.url, headers, format },
      );
      const broken = {
        code: 3,
        message: expect.stringContaining("query: "),
        fields: ["query"],
        reasons: ["ERROR_REASON_INVALID_FIELD"],
      };
      const brokenStream = { ...broken, message: expect.stringContaining("cursor: "), fields: ["cursor"] };
      expect(seen).toEqual({
        succeeded: 1,
        names: expect.arrayContaining([`seen in ${format}`]),
        broken,
        brokenStream,
      });
    });
  }

  const watch = (page: Page, format: Format, ends: { until?: string; cursor?: string; deadlineMs?: number }) =>
    page.evaluate(
      ({ url, headers, format, ends }) =>
        (globalThis as unknown as { program: Program }).program.officialWatch(url, headers, format, ends),
      { url: server.url, headers, format, ends },
    );

  onPage("text reads a stream as it comes, binary when its deadline has ended it", origin, async (page) => {
    const names = ["official 1", "official 2"];
    const seen = await told(page, names, () => watch(page, "text", { until: "official 2" }));
    expect(seen).toMatchObject({ names });
    await put("official 3");
    const ended = await watch(page, "binary", { cursor: seen.cursor, deadlineMs: 2000 });
    expect(ended).toMatchObject({ names: ["official 3"], code: 4 });
  });
});

describe("a page of another origin", () => {
  // The same machine under another name is another origin.
  const foreign = `http://localhost:${pagePort}`;

  onPage("is refused by the browser, and nothing is done", foreign, async (page) => {
    const answer = await json(page, "POST", "/v1/api-clients", '{"name":"foreign","type":"DATA_INGEST"}');
    expect(answer.refused).toContain("Failed to fetch");
    const [row] = await server.database.sql`select count(*)::int4 as made from api_clients where name = 'foreign'`;
    expect(row?.made).toBe(0);
    expect(await tour(page, ["connect", false])).toMatchObject({ message: expect.stringContaining("Failed to fetch") });
  });
});
