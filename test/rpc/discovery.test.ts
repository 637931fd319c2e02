import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodOptions_IdempotencyLevel,
} from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, createHandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Status,
} from "#gen/grpc/health/v1/health_pb.ts";
import { ServerReflection, type ServerReflectionRequestSchema } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "#gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { routes } from "#gen/routes.ts";
import { healthOf } from "../../src/rpc/discovery.ts";
import { openLog } from "../../src/rpc/log.ts";
import { pipeline } from "../../src/rpc/pipeline.ts";
import { protocols, rawHttp1, transport } from "../support/clients.ts";
import { temporaryDir } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const root = new URL("../..", import.meta.url).pathname;
// Of five streams without a key one address has four.
const server = await testServer({}, { streamsMax: 100, streamIdleMs: 1000 });
const grpc = transport(server.target, "grpc", {});
const thrown = (call: Promise<unknown>) => call.then(() => expect.fail("it succeeded"), ConnectError.from);

type Asked = MessageInitShape<typeof ServerReflectionRequestSchema>;

/** The answers to these requests, in one stream. */
async function reflected(...asked: Asked[]) {
  async function* requests() {
    yield* asked;
  }
  const answers = await Array.fromAsync(createClient(ServerReflection, grpc).serverReflectionInfo(requests()));
  return answers.map(({ messageResponse }) => messageResponse);
}

const filesOf = ({ case: which, value }: Awaited<ReturnType<typeof reflected>>[number]) => {
  if (which !== "fileDescriptorResponse") return which;
  return value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name);
};

/** The file descriptors that `buf` compiles of these inputs of the repository. */
async function compiled(...input: string[]) {
  const file = join(temporaryDir(), "schema.binpb");
  const args = ["build", ...input, "--as-file-descriptor-set", "--exclude-source-info", "-o", file];
  await promisify(execFile)(join(root, "node_modules/.bin/buf"), args, { cwd: root });
  return fromBinary(FileDescriptorSetSchema, readFileSync(file)).file;
}

describe("reflection", () => {
  test("lists the services that are served, and answers their files as buf compiles them, options and imports included", async () => {
    const own = await compiled("proto", "--path", "proto/belfry");
    const all = [...own, ...(await compiled("gen", "--path", "gen/grpc"))];
    const names = all.flatMap((file) => file.service.map(({ name }) => `${file.package}.${name}`));
    const [list, ...answers] = await reflected(
      { messageRequest: { case: "listServices", value: "" } },
      ...all.map(({ name: value }): Asked => ({ messageRequest: { case: "fileByFilename", value } })),
    );
    const listed = list?.case === "listServicesResponse" ? list.value.service.map(({ name }) => name) : list;
    expect(listed).toEqual(names.sort());
    expect(names.length).toBeGreaterThan(20);
    for (const [i, file] of all.entries()) {
      const answer = answers[i];
      if (answer?.case !== "fileDescriptorResponse") throw new Error(`${file.name}: ${answer?.case}`);
      const [bytes = new Uint8Array()] = answer.value.fileDescriptorProto;
      const wanted = toBinary(FileDescriptorProtoSchema, file);
      expect(Buffer.compare(bytes, wanted), file.name).toBe(0);
    }
  });

  test("finds files by what they hold; each comes with its imports, and once a stream", async () => {
    const symbols = [
      "belfry.events.v1.EventQueryService",
      "belfry.events.v1.EventQueryService.GetEvent",
      "belfry.events.v1.Event",
      "belfry.events.v1.Event.name",
      "belfry.events.v1.Severity",
      "belfry.events.v1.SEVERITY_ERROR",
      "belfry.auth.v1.permission",
      "google.rpc.BadRequest.FieldViolation",
    ];
    const answers = await reflected(
      ...symbols.map((value): Asked => ({ messageRequest: { case: "fileContainingSymbol", value } })),
    );
    const [query = [], ...others] = answers.map(filesOf);
    expect(query[0]).toBe("belfry/events/v1/query_service.proto");
    expect(query).toContain("buf/validate/validate.proto");
    expect(others).toEqual([
      ["belfry/events/v1/query_service.proto"],
      ["belfry/events/v1/event.proto"],
      ["belfry/events/v1/event.proto"],
      ["belfry/events/v1/event.proto"],
      ["belfry/events/v1/event.proto"],
      ["belfry/auth/v1/permission.proto"],
      ["google/rpc/error_details.proto"],
    ]);
  });

  test("tells extensions by number, and what it does not know", async () => {
    const containingType = "google.protobuf.MethodOptions";
    const extension = (extensionNumber: number): Asked => ({
      messageRequest: { case: "fileContainingExtension", value: { containingType, extensionNumber } },
    });
    const numbers = (value: string): Asked => ({ messageRequest: { case: "allExtensionNumbersOfType", value } });
    const answers = await reflected(
      extension(72295728),
      extension(1),
      numbers(containingType),
      numbers("belfry.events.v1.Event"),
      numbers("nothing"),
      { messageRequest: { case: "fileByFilename", value: "nothing.proto" } },
      { messageRequest: { case: "fileContainingSymbol", value: "nothing" } },
      {},
    );
    expect(filesOf(answers[0] as never)?.[0]).toBe("google/api/annotations.proto");
    const unknown = { case: "errorResponse", value: { errorCode: Code.NotFound } };
    expect(answers[1]).toMatchObject(unknown);
    expect(answers[2]).toMatchObject({ value: { extensionNumber: expect.arrayContaining([72295728]) } });
    expect(answers[3]).toMatchObject({ value: { baseTypeName: "belfry.events.v1.Event", extensionNumber: [] } });
    expect(answers.slice(4, 7)).toMatchObject([unknown, unknown, unknown]);
    expect(answers[7]).toMatchObject({ case: "errorResponse", value: { errorCode: Code.InvalidArgument } });
  });

  test.each(protocols)("answers v1 and v1alpha over %s, each request as it comes", async (protocol) => {
    for (const service of [ServerReflection, ServerReflectionAlpha] as (typeof ServerReflection)[]) {
      const client = createClient(service, transport(server.target, protocol, {}));
      const first = Promise.withResolvers<void>();
      async function* requests() {
        yield { host: "here", messageRequest: { case: "listServices" as const, value: "" } };
        await first.promise; // over one HTTP/2 stream the answer comes before the next question
        yield { messageRequest: { case: "fileByFilename" as const, value: "grpc/health/v1/health.proto" } };
      }
      const answers = [];
      for await (const answer of client.serverReflectionInfo(requests())) {
        answers.push(answer);
        first.resolve();
      }
      expect(answers).toMatchObject([
        { validHost: "here", originalRequest: { host: "here" }, messageResponse: { case: "listServicesResponse" } },
        { messageResponse: { case: "fileDescriptorResponse" } },
      ]);
    }
  });
});

describe("health", () => {
  test.each(protocols)("over %s: one service, all of them, and one that is unknown", async (protocol) => {
    const client = createClient(Health, transport(server.target, protocol, { "service-api-key": "of nobody" }));
    expect(await client.check({})).toMatchObject({ status: Status.SERVING });
    expect(await client.check({ service: "belfry.events.v1.EventQueryService" })).toMatchObject({
      status: Status.SERVING,
    });
    expect(await thrown(client.check({ service: "nothing" }))).toMatchObject({ code: Code.NotFound });
    const { statuses } = await client.list({});
    expect(Object.keys(statuses)).toEqual(expect.arrayContaining(["", "belfry.receiver.v1.DataReceiverService"]));
  });

  test("a probe over HTTP/1.1 with JSON is answered", async () => {
    const body = [Buffer.from("{}")];
    const headers = { "content-type": "application/json" };
    const answer = await rawHttp1(server.target, { path: "/grpc.health.v1.Health/Check", headers, body });
    expect([answer.status, String(answer.body)]).toEqual([200, '{"status":"SERVING"}']);
  });

  test("a watch tells changes alone, also of services that are unknown", async () => {
    let serving = true;
    const { service, stop } = healthOf(["known"], () => serving);
    const { signal } = new AbortController();
    const names = new Map<number, string>(Object.entries(Status).map(([name, status]) => [status, name]));
    const told: string[] = [];
    async function watch(name: string) {
      const context = { signal } as Parameters<typeof service.watch>[1];
      for await (const { status } of service.watch({ service: name } as never, context))
        told.push(`${name} ${names.get(Number(status))}`);
    }
    const ended = Promise.all(["known", "", "other"].map((name) => thrown(watch(name))));
    const wait = (count: number) => expect.poll(() => told.length).toBe(count);
    await wait(3);
    serving = false;
    await wait(5);
    serving = true;
    await wait(7);
    stop();
    expect((await ended).map(({ code }) => code)).toEqual([Code.Unavailable, Code.Unavailable, Code.Unavailable]);
    expect(told).toEqual([
      "known SERVING",
      " SERVING",
      "other SERVICE_UNKNOWN",
      "known NOT_SERVING",
      " NOT_SERVING",
      "known SERVING",
      " SERVING",
      "known NOT_SERVING",
      " NOT_SERVING",
    ]);
  });
});

describe("without a key nothing can be used up", () => {
  test("streams are few, and one address leaves room for others; unary calls are answered still", async () => {
    const client = createClient(Health, grpc);
    const ending = new AbortController();
    const watches = Array.from({ length: 4 }, () => client.watch({}, ending)[Symbol.asyncIterator]());
    for (const watch of watches) expect((await watch.next()).value).toMatchObject({ status: Status.SERVING });
    const refused = await thrown(client.watch({})[Symbol.asyncIterator]().next());
    expect(refused).toMatchObject({ code: Code.ResourceExhausted });
    expect(refused.rawMessage).toContain("from this address");
    expect(await client.check({})).toMatchObject({ status: Status.SERVING });
    ending.abort();
    await expect.poll(() => client.watch({})[Symbol.asyncIterator]().next()).toMatchObject({});
  });

  test("a stream of reflection that says nothing is ended", async () => {
    const { promise: never, resolve } = Promise.withResolvers<void>();
    async function* silent() {
      yield { messageRequest: { case: "listServices" as const, value: "" } };
      await never;
    }
    const answers = Array.fromAsync(createClient(ServerReflection, grpc).serverReflectionInfo(silent()));
    expect(await thrown(answers)).toMatchObject({ code: Code.DeadlineExceeded });
    resolve();
  });

  test("requests are short and counted", async () => {
    const value = "x".repeat(20_000);
    expect(await thrown(createClient(Health, grpc).check({ service: value }))).toMatchObject({
      code: Code.ResourceExhausted,
    });
    expect(await thrown(reflected({ host: value }))).toMatchObject({ code: Code.ResourceExhausted });
    const many = Array.from({ length: 2001 }, (): Asked => ({ messageRequest: { case: "fileByFilename", value: "" } }));
    expect(await thrown(reflected(...many))).toMatchObject({ code: Code.ResourceExhausted });
  });

  test("a stream does not last for ever", async () => {
    const calls = pipeline({
      verify: () => expect.fail("it wants a key"),
      gate: { run: () => expect.fail("it asks the database") },
      log: openLog("silent"),
      unauthenticated: { streamsMax: 1, streamMsMax: 50 },
    });
    const { watch } = calls.implementUnauthenticated(Health, healthOf([], () => true).service);
    const { watch: method } = Health.method;
    const contextValues = await calls.admit(method, new Headers());
    const init = { service: Health, method, protocolName: "grpc", requestMethod: "POST", url: "", contextValues };
    const statuses = watch(create(HealthCheckRequestSchema), createHandlerContext(init));
    expect(await thrown(Array.fromAsync(statuses))).toMatchObject({ code: Code.Unavailable });
  });
});

describe("reads by Connect's GET", () => {
  const search = "/belfry.events.v1.EventQueryService/SearchEvents";
  const get = (path: string, query: Record<string, string>, headers: Record<string, string>) =>
    rawHttp1(server.target, {
      method: "GET",
      path: `${path}?${new URLSearchParams({ connect: "v1", ...query })}`,
      headers,
    });

  test("are those of RPCs without side effects, and no others", async () => {
    const all = [...new Set(routes.map(({ method }) => method.parent))].flatMap(({ methods }) => methods);
    const reading = all.filter(({ idempotency }) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS);
    const verbs = /^(Get|BatchGet|List|Search|Count|Group|Watch|Preview|Explain)[A-Z]/;
    expect(reading.map(({ name }) => name)).toEqual(all.map(({ name }) => name).filter((name) => verbs.test(name)));
    const { headers } = await testTenant(server.database.sql);
    const write = "/belfry.tenants.v1.ApiClientService/CreateApiClient";
    const message = '{"name":"by GET","type":"DATA_INGEST"}';
    const refused = await get(write, { encoding: "json", message }, headers);
    expect([refused.status, refused.headers.allow]).toEqual([405, "POST, OPTIONS"]);
  });

  test("pass what all calls pass: key, rules, bounds of a message, also when it is compressed", async () => {
    const { headers } = await testTenant(server.database.sql);
    const ask = async (query: Record<string, string>, key: Record<string, string> = headers) => {
      const { status, body } = await get(search, query, key);
      return { status, ...JSON.parse(String(body)) };
    };
    const json = { encoding: "json", message: '{"query":{}}' };
    expect(await ask(json)).toMatchObject({ status: 200, pageInfo: expect.any(Object) });
    expect(await ask(json, {})).toMatchObject({ status: 401, code: "unauthenticated" });
    expect(await ask({ ...json, message: "{}" })).toMatchObject({ status: 400, message: "query: is required" });
    const packed = (bytes: Buffer) => ({
      encoding: "json",
      compression: "gzip",
      base64: "1",
      message: gzipSync(bytes).toString("base64url"),
    });
    expect(await ask(packed(Buffer.from('{"query":{}}')))).toMatchObject({ status: 200 });
    const bomb = packed(Buffer.alloc(5 * 1024 * 1024, 32));
    expect(await ask(bomb)).toMatchObject({ status: 429, code: "resource_exhausted" });
    const long = await get(search, { ...json, message: `{"query":{}${" ".repeat(20_000)}}` }, headers);
    expect(long.status).toBe(431);
  });
});

// The last one: it stops the server.
test("a server that stops tells it to those who watch", async () => {
  const told: Status[] = [];
  const watch = thrown(
    (async () => {
      for await (const { status } of createClient(Health, grpc).watch({})) told.push(status);
    })(),
  );
  await expect.poll(() => told).toEqual([Status.SERVING]);
  await server.stop();
  expect(await watch).toMatchObject({ code: Code.Unavailable });
  expect(told).toEqual([Status.SERVING, Status.NOT_SERVING]);
});
