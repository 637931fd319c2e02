import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { fromBinary } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";
import { routes } from "#gen/routes.ts";
import { temporaryDir } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, type TestTenant, testTenant } from "../support/tenant.ts";

const root = new URL("../..", import.meta.url).pathname;
const buf = join(root, "node_modules/.bin/buf");
const folder = temporaryDir();
const schema = join(folder, "schema.binpb");
const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const now = String(Date.now());

beforeAll(async () => {
  await promisify(execFile)(buf, ["build", "proto", "-o", schema], { cwd: root });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What `buf curl` printed: the answer, or the error, and its exit code, which is the gRPC code times eight. */
interface Outcome {
  code: number;
  // biome-ignore lint/suspicious/noExplicitAny: members of an answer are looked at by path; a wrong path fails its test
  answer: any;
  error: { code: string; message: string; details?: { type: string; value: string }[] } | string | undefined;
}

function parsed(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Calls as a person at a terminal does, over TLS with the server's local CA. Several messages make a stream. */
function curl(
  protocol: string,
  rpc: string,
  messages: unknown[],
  headers: Record<string, string>,
  way: string[] = ["--schema", schema],
): Promise<Outcome> {
  const args = ["curl", ...way, "--cacert", server.caFile ?? "", "--protocol", protocol];
  for (const [name, value] of Object.entries(headers)) args.push("--header", `${name}: ${value}`);
  args.push("--data", "@-", `${server.url}/${rpc}`);
  return new Promise((resolve) => {
    const child = execFile(buf, args, { maxBuffer: 64 * 1024 * 1024 }, (failure, stdout, stderr) => {
      resolve({
        code: failure === null ? 0 : Number(failure.code) / 8,
        answer: stdout === "" ? undefined : parsed(stdout),
        error: stderr === "" ? undefined : parsed(stderr),
      });
    });
    child.stdin?.end(messages.map((message) => JSON.stringify(message)).join("\n"));
  });
}

const receiver = "belfry.receiver.v1.DataReceiverService";
const searchEvents = "belfry.events.v1.EventQueryService/SearchEvents";
const searchEntities = "belfry.entities.v1.EntityService/SearchEntities";

const dimensions = { source: "web-1" };
const entityNamed = (value: string) => ({
  search_input: { query: { clause: { filter: { field: "name", operation: "OP_EQUALS", value } } } },
});

describe.each(["grpc", "grpcweb", "connect"])("buf curl over TLS, --protocol %s", (protocol) => {
  const call = ({ headers }: Pick<TestTenant, "headers">, rpc: string, ...messages: unknown[]) =>
    curl(protocol, rpc, messages, headers);

  test("models and events go in, entities and events come out", async () => {
    const tenant = await testTenant(server.database.sql);
    const model = { timestamp: now, dimensions, metadataFields: { name: "Web 1", type: "host", racks: [1, null] } };
    expect(await call(tenant, `${receiver}/PutModels`, { models: [model] })).toEqual({
      code: 0,
      answer: { succeeded: 1, message: "1 of 1 models processed" },
      error: undefined,
    });
    const event = { name: "disk full", timestamp: now, dimensions, severity: "SEVERITY_ERROR", status: "STATUS_OPEN" };
    expect(await call(tenant, `${receiver}/PutEvents`, { events: [event] })).toMatchObject({
      code: 0,
      answer: { succeeded: 1, message: "1 of 1 events processed" },
    });

    const entities = await call(tenant, searchEntities, entityNamed("Web 1"));
    expect(entities).toMatchObject({ code: 0, error: undefined });
    expect(entities.answer.entities.entities).toMatchObject([{ name: "Web 1", timestamp: now, dimensions }]);
    const events = await call(tenant, searchEvents, {
      query: { severities: ["SEVERITY_ERROR"], timeRange: { start: now, end: String(Number(now) + 1) } },
    });
    expect(events).toMatchObject({ code: 0, error: undefined });
    expect(events.answer).toMatchObject({
      results: [{ name: "disk full", entityName: "Web 1", occurrences: [{ status: "STATUS_OPEN", lastSeen: now }] }],
      pageInfo: { count: "1", totalCount: "1" },
    });
  });

  test("a client stream is one call with several messages; what does not fit is named", async () => {
    const tenant = await testTenant(server.database.sql);
    const good = { canonical: { name: "a", timestamp: now, dimensions } };
    const { code, answer } = await call(tenant, `${receiver}/PutEvent`, good, { canonical: { name: "b" } }, good);
    expect(code).toBe(0);
    expect(answer).toMatchObject({ failed: 1, succeeded: 2, message: "2 of 3 events processed" });
    expect(answer.failedEvents).toMatchObject([
      { error: expect.stringMatching(/\[1\]\.timestamp: .*; .*\[1\]\.dimensions: /), event: { name: "b" } },
    ]);
  });

  test("one bad item of a batch is told why, and the others are stored", async () => {
    const tenant = await testTenant(server.database.sql);
    const { code, answer } = await call(tenant, `${receiver}/PutEvents`, {
      detailedResponse: true,
      events: [
        { name: "a", timestamp: now, dimensions },
        { name: "b", timestamp: now, dimensions, summary: "x".repeat(129) },
      ],
    });
    expect(code).toBe(0);
    expect(answer.failedEvents).toMatchObject([
      { error: "events[1].summary: must be at most 128 characters", event: { name: "b" } },
    ]);
    expect((await call(tenant, searchEvents, { query: {} })).answer.results).toMatchObject([{ name: "a" }]);
  });

  test("a wrong key says what is wrong with it: code 16", async () => {
    const { headers } = await testTenant(server.database.sql);
    const key = headers["service-api-key"] ?? "";
    const wrong: { headers: Record<string, string>; message: RegExp }[] = [
      { headers: {}, message: /key is needed.* service-api-key/ },
      { headers: { "service-api-key": "nonsense" }, message: /mistyped/ },
      { headers: { "service-api-key": key.slice(0, -1) }, message: /mistyped or cut short/ },
    ];
    for (const { headers, message } of wrong) {
      const { code, answer, error } = await call({ headers }, searchEvents, { query: {} });
      expect({ code, answer }).toEqual({ code: Code.Unauthenticated, answer: undefined });
      expect(error).toMatchObject({ code: "unauthenticated", message: expect.stringMatching(message) });
    }
  });

  test("a key whose client may not: code 7", async () => {
    const { id } = await testTenant(server.database.sql);
    const headers = await keyHeaders(server.database.sql, id, "DATA_INGEST", null);
    const { code, error } = await call({ headers }, searchEvents, { query: {} });
    expect(code).toBe(Code.PermissionDenied);
    expect(error).toMatchObject({ code: "permission_denied", message: expect.stringContaining("DATA_INGEST") });
  });

  test.each([
    { what: "a missing one", request: {}, field: "query" },
    { what: "a number beyond an enum", request: { query: { severities: [77] } }, field: "query.severities[0]" },
    { what: "a foreign cursor", request: { query: { pageInput: { cursor: "x" } } }, field: "query.pageInput.cursor" },
  ])("a bad field is named, in the message and in BadRequest: $what", async ({ request, field }) => {
    const { code, error } = await call(await testTenant(server.database.sql), searchEvents, request);
    expect(code).toBe(Code.InvalidArgument);
    if (typeof error !== "object") throw new Error(`not an error of the API: ${error}`);
    expect(error).toMatchObject({ code: "invalid_argument", message: expect.stringContaining(`${field}: `) });
    const [detail] = error.details ?? [];
    expect(detail?.type).toBe("google.rpc.BadRequest");
    const { fieldViolations } = fromBinary(BadRequestSchema, base64Decode(detail?.value ?? ""));
    expect(fieldViolations).toMatchObject([{ field, description: expect.stringMatching(/\w/) }]);
  });

  test("without a schema: methods are listed, called, and their errors read by reflection", async () => {
    const tenant = await testTenant(server.database.sql);
    const listed = await promisify(execFile)(buf, [
      "curl",
      "--cacert",
      server.caFile ?? "",
      "--protocol",
      protocol,
      "--list-methods",
      server.url,
    ]);
    const methods = listed.stdout.trim().split("\n");
    const services = new Set(routes.map(({ method }) => method.parent));
    const all = [...services].flatMap(({ typeName, methods }) => methods.map(({ name }) => `${typeName}/${name}`));
    expect(methods.filter((name) => name.startsWith("belfry."))).toEqual(all.sort());
    expect(methods).toContain("grpc.health.v1.Health/Check");

    for (const version of ["grpc-v1", "grpc-v1alpha"]) {
      const way = ["--reflect-protocol", version];
      const event = { name: version, timestamp: now, dimensions };
      const put = await curl(protocol, `${receiver}/PutEvents`, [{ events: [event] }], tenant.headers, way);
      expect(put).toMatchObject({ code: 0, answer: { succeeded: 1 } });
      const { code, error } = await curl(protocol, searchEvents, [{}], tenant.headers, way);
      expect([code, error]).toMatchObject([
        3,
        { details: [{ type: "google.rpc.BadRequest" }, { type: "google.rpc.ErrorInfo" }] },
      ]);
    }
    const health = await curl(protocol, "grpc.health.v1.Health/Check", [{}], {}, []);
    expect(health).toMatchObject({ code: 0, answer: { status: "SERVING" } });
  });
});
