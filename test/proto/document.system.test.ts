import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import { beforeAll, describe, expect, test } from "vitest";
import { routes } from "#gen/routes.ts";
import type { Example } from "../../scripts/transcoding/texts.ts";
import { createClient, createKey, createTenant } from "../../src/auth/create-tenant.ts";
import { type IntegrationParts, integrations } from "../../src/integrations/table.ts";
import { checkAnswer } from "../support/documented.ts";
import { exampleSteps, translation } from "../support/examples.ts";
import { httpReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { v1 } from "../support/v1.ts";
import { tenCalls } from "./ten-calls.ts";

// biome-ignore lint/suspicious/noExplicitAny: the tests walk the document
type Json = any;

const root = new URL("../..", import.meta.url).pathname;
const execute = promisify(execFile);

/** EXAMPLES=record keeps the answers of the server in the files of the examples. */
const recording = process.env.EXAMPLES === "record";

const text = readFileSync(new URL("../../gen/openapi.json", import.meta.url), "utf8");
const document: Json = JSON.parse(text);
const operations = Object.entries<Json>(document.paths).flatMap(([path, verbs]) =>
  Object.entries<Json>(verbs).map(([verb, operation]) => ({ path, verb: verb.toUpperCase(), operation })),
);

test("the document has exactly the routes that are served", () => {
  const ours = routes.map(({ verb, template }) => `${verb} ${template.replace(/\{[^}]*\}/g, "{}")}`);
  const foreign = integrations({ config: {} } as IntegrationParts).flatMap(({ operations: all }) =>
    all.flatMap(({ routes: own }) =>
      own.flatMap((route) => ("grpc" in route ? [] : `${route.method} ${route.path.replace("*", "{}")}`)),
    ),
  );
  const served = [...ours, ...foreign];
  const documented = operations.map(({ verb, path }) => `${verb} ${path.replace(/\{[^}]*\}/g, "{}")}`);
  expect(documented.sort()).toEqual(served.sort());
});

describe("the OpenAPI document passes", () => {
  test("the schema of OpenAPI 3.1", async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(document));
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
  });

  test("the strictest rules of a linter, its examples by their schemas among them", async () => {
    const config = await createConfig({ extends: ["recommended-strict"] });
    const problems = await lintFromString({ source: text, absoluteRef: "openapi.json", config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  });
});

test("answers of /v1 are held to the document, wherever tests see them", async () => {
  const path = "/v1/notification/triggers/Disk%20in%20danger";
  const good =
    document.paths["/v1/notification/triggers/{name}"].get.responses[200].content["application/json"].example;
  const answers =
    (body: object, status = 200) =>
    () =>
      checkAnswer("GET", path, status, JSON.stringify(body));
  expect(answers(good)).not.toThrow();
  const { trigger } = good;
  expect(answers({ trigger: { ...trigger, recentNotificationCount: 1 } })).toThrow(
    "recentNotificationCount must be string",
  );
  expect(answers({ trigger: { ...trigger, secret: "1" } })).toThrow("must NOT have additional properties");
  expect(answers({ trigger: { ...trigger, tags: undefined } })).toThrow("must have required property 'tags'");
  expect(answers({ code: 5 }, 404)).toThrow("must have required property 'message'");
  // Also of fetch.
  await using other = await httpReceiver();
  other.answer((_request, response) => response.setHeader("content-type", "application/json").end("{}"));
  await expect(fetch(other.url + path)).rejects.toThrow("does not say");
  // Also of each record of a stream.
  other.answer((_request, response) =>
    response.setHeader("content-type", "application/x-ndjson").end('{"result":{}}\n'),
  );
  const stream = await fetch(`${other.url}/v1/events:watch`, { method: "POST" });
  await expect(stream.text()).rejects.toThrow("must have required property 'change'");
});

describe("against a running server", async () => {
  const server = await testServer({ BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" });
  const key = await managerKey("Example");
  const headers = { "service-api-key": key };
  const call = v1(server.url, headers);
  const page: Record<string, string> = { "sec-fetch-site": "same-origin" };
  let receiver: Awaited<ReturnType<typeof httpReceiver>>;
  let translate: ReturnType<typeof translation>;

  beforeAll(async () => {
    receiver = await httpReceiver();
    // It takes tests and refuses what the rule sends, so that there is a delivery that failed.
    receiver.answer(({ body }, response) => {
      response.writeHead(body.includes("Tickets for disks") ? 400 : 200).end("no such queue");
    });
    const example = `bf_ExampleKey12_${"0".repeat(49)}`;
    const same = { "https://hooks.example.com": receiver.url, [example]: key };
    translate = translation(Date.now(), { ...same, ExampleKey12: key.split("_")[1] ?? "" });
    return () => receiver[Symbol.asyncDispose]();
  });

  async function managerKey(tenant: string): Promise<string> {
    const { sql } = server.database;
    const { id } = await createTenant(sql, tenant);
    const client = await createClient(sql, id, { name: "Operations", type: "USER", role: "manager" });
    return (await createKey(sql, id, client.id, { description: "example", expiresMs: null })).text;
  }

  async function send({ rpc, path = {}, query = {}, body }: Example) {
    const found = operations.find(({ operation }) => operation.operationId === rpc.replace("/", "_"));
    if (found === undefined) throw new Error(`no operation of ${rpc}`);
    const filled = found.path.replace(/\{([^}]*)\}/g, (_all, name) =>
      encodeURIComponent(String(translate.sent(path[name]))),
    );
    const parameters = Object.entries(query).flatMap(([name, value]) =>
      [value].flat().map((each) => [name, String(translate.sent(each))]),
    );
    const url = `${filled}${parameters.length === 0 ? "" : `?${new URLSearchParams(parameters)}`}`;
    const sent = body === undefined ? undefined : JSON.stringify(translate.sent(body));
    const streamed = found.operation.responses[200].content["application/x-ndjson"] !== undefined;
    if (streamed) return await firstRecord(url, sent);
    if (!rpc.startsWith("SessionService/")) return await call(found.verb, url, sent);
    // As a browser, which keeps the cookie, and its page, which keeps the proof.
    const answer = await v1(server.url, page)(found.verb, url, sent);
    page.cookie ??= answer.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
    page["service-session-proof"] ??= answer.body.pageProof;
    return answer;
  }

  async function firstRecord(url: string, body: string | undefined) {
    const answer = await fetch(server.url + url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      ...(body !== undefined && { body }),
    });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    const { value } = await reader.read();
    await reader.cancel();
    return { status: answer.status, body: JSON.parse(Buffer.from(value ?? []).toString()) };
  }

  test("no method that is not documented answers", async () => {
    for (const path of Object.keys(document.paths)) {
      // `any:preview` may be a name, too.
      const named = path.endsWith("}") ? path : path.replace(/(?<=\}):\w+$/, "");
      const verbs = Object.keys({ ...document.paths[named], ...document.paths[path] }).map((verb) =>
        verb.toUpperCase(),
      );
      const { headers: told } = await call("OPTIONS", path.replace(/\{[^}]*\}/g, "any"));
      const allowed = (told.get("allow") ?? "").split(", ").sort();
      const head = verbs.includes("GET") ? ["HEAD"] : [];
      expect(allowed, path).toEqual([...verbs, "OPTIONS", ...head].sort());
      const other = ["PATCH", "DELETE", "GET"].find((verb) => !verbs.includes(verb)) ?? "REPORT";
      // Each in the form of its tool, which may be a text or Protobuf.
      if (["/api/v1/write", "/v1/metrics", "/v1/logs", "/v1/traces"].includes(path)) {
        const { status } = await fetch(server.url + path, { method: other, headers });
        expect(status, path).toBe(405);
        continue;
      }
      const answer = await call(other, path.replace(/\{[^}]*\}/g, "any"));
      const refusal = path.startsWith("/api/")
        ? { status: 405, body: { code: 405 } }
        : { status: 501, body: { code: 12 } };
      expect(answer, path).toMatchObject(refusal);
    }
  });

  test("a client that is made of the document compiles and makes ten calls", async () => {
    const folder = mkdtempSync(join(tmpdir(), "openapi-client-"));
    try {
      const run = async (program: string, ...args: string[]) => (await execute(program, args, { cwd: folder })).stdout;
      const bin = (name: string) => join(root, "node_modules/.bin", name);
      symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
      writeFileSync(join(folder, "client.ts"), tenCalls);
      writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
      await run(bin("openapi-typescript"), join(root, "gen/openapi.json"), "--output", "openapi.d.ts");
      const rules =
        "--noEmit --strict --noUncheckedIndexedAccess --module nodenext --allowImportingTsExtensions --types node";
      const checker = join(root, "node_modules/typescript-7/bin/tsc");
      const checked = run(process.execPath, checker, ...rules.split(" "), "client.ts");
      await checked.catch(({ stdout }) => expect.fail(stdout));
      expect(JSON.parse(await run(process.execPath, "client.ts", server.url, await managerKey("Another")))).toEqual({
        stored: 1,
        points: 1,
        events: 1,
        name: "client-1",
        lastSeen: true,
        created: "Client",
        description: "Of a client",
        total: "1",
        gone: [404, 5],
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  // One after the other: they build on each other.
  test.each(exampleSteps().map((step) => [step.example.rpc, step] as const))(
    "%s answers its example",
    async (_rpc, step) => {
      const { example, record } = step;
      for (let i = 0; ; i++) {
        const { status, body } = await send(example);
        // What is being tried again is not tried once more.
        if (example.rpc === "DeliveryService/RetryDelivery" && status === 400 && i < 50) {
          await sleep(100);
          continue;
        }
        expect({ status, ...(status !== 200 && { body }) }).toEqual({ status: 200 });
        const answer = translate.told(body, example.answer);
        // What follows from an earlier call may take a moment.
        const waits = example.rpc === "DeliveryService/ListDeliveries" && i < 50;
        if (waits && (recording ? body.deliveries.length === 0 : !same(answer, example.answer))) {
          await sleep(100);
          continue;
        }
        if (recording) record(answer);
        else expect(answer, "EXAMPLES=record keeps what the server answers").toEqual(example.answer);
        return;
      }
    },
  );
});

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
