import { execFile, execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { temporaryDir } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const root = new URL("../..", import.meta.url).pathname;
const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const folder = temporaryDir();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program with what the examples take: address, CA, key file of a new tenant. Answers what it printed. */
async function run(program: string, args: string[], env: Record<string, string> = {}) {
  const { headers } = await testTenant(server.database.sql);
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, `${headers["service-api-key"]}\n`, { mode: 0o600 });
  const all = [...args, server.url, server.caFile ?? "", keyFile];
  const { stdout, stderr } = await promisify(execFile)(program, all, { cwd: root, env: { ...process.env, ...env } });
  expect(stderr).toBe("");
  return stdout;
}

/** Whether a command ends well. */
function works(program: string, ...args: string[]) {
  try {
    execFileSync(program, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** What the tours print, but for ids. */
const tour = (name: string, invalid: string, unauthenticated: string) =>
  new RegExp(
    [
      "1 of 1 models processed",
      "1 of 2 events processed",
      "  not taken: events\\[1\\]\\.dimensions: .+",
      "1000 of 1000 events processed",
      `entity [\\w-]{27}= is ${name}`,
      "  disk full: SEVERITY_ERROR, 1 times, [\\w-]{27}=",
      ...Array.from({ length: 10 }, (_, i) => `  job ${i} is late: SEVERITY_WARNING, 100 times, [\\w-]{27}=`),
      "11 events in all",
      `no query: ${invalid}: query: is required`,
      "(?:  field query: is required\n)?a key cut short: " +
        `${unauthenticated}: the API key is mistyped or cut short: .+\n$`,
    ].join("\n"),
  );

test("examples/typescript does what it says", async () => {
  const printed = await run(process.execPath, ["examples/typescript/tour.ts"]);
  expect(printed).toMatch(tour("TypeScript tour", "InvalidArgument", "Unauthenticated"));
  const [refused = ""] = /^ {2}not taken: .*$/m.exec(printed) ?? [];
  for (const language of ["typescript", "python"])
    expect(readFileSync(join(root, `examples/${language}/README.md`), "utf8")).toContain(`\n${refused}\n`);
});

test("the template of examples/python makes the details of errors, too", () => {
  const template = readFileSync(join(root, "examples/python/buf.gen.yaml"), "utf8");
  const [inputs = ""] = template.split("plugins:");
  const own = join(folder, "buf.gen.yaml");
  writeFileSync(own, `${inputs}plugins:\n  - local: protoc-gen-es\n    out: made\n    include_imports: true\n`);
  const env = { ...process.env, PATH: `${join(root, "node_modules/.bin")}:${process.env.PATH}` };
  const buf = join(root, "node_modules/.bin/buf");
  execFileSync(buf, ["generate", "--template", own, "-o", folder], { cwd: root, env });
  for (const path of ["google/rpc/error_details_pb.js", "google/rpc/status_pb.js", "belfry/errors/v1/reasons_pb.js"])
    expect(existsSync(join(folder, "made", path)), path).toBe(true);
});

test("examples/curl does what it says", async ({ skip }) => {
  skip(!works("curl", "--version"), "curl is not installed");
  const printed = await run("sh", ["examples/curl/tour.sh"]);
  const answers = [...printed.matchAll(/^# (.+)\n(.+)\nHTTP (\d+)$/gm)].map(([, , body, status]) => ({
    status: Number(status),
    body: JSON.parse(body ?? ""),
  }));
  expect(answers).toMatchObject([
    { status: 200, body: { succeeded: 1 } },
    {
      status: 200,
      body: {
        succeeded: 1,
        failed: 1,
        failedEvents: [{ error: expect.stringContaining("events[1].dimensions: "), event: { name: "disk slow" } }],
      },
    },
    { status: 200, body: { results: [{ name: "disk full", entityName: "Web 1" }], pageInfo: { totalCount: "1" } } },
    { status: 200, body: { result: { occurrences: [{ severity: "SEVERITY_ERROR" }] } } },
    { status: 200, body: { entities: { entities: [{ name: "Web 1", dimensions: { source: "web-1" } }] } } },
    { status: 400, body: { code: 3, message: expect.stringContaining("events[0].severity: ") } },
    { status: 401, body: { code: 16, message: expect.stringContaining("mistyped") } },
  ]);
});

test("examples/opentelemetry does what it says", async () => {
  const { id, headers } = await testTenant(server.database.sql);
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: server.url,
    OTEL_EXPORTER_OTLP_CERTIFICATE: server.caFile ?? "",
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer ${headers["service-api-key"]}`,
  };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["examples/opentelemetry/shop.ts"], {
    cwd: root,
    env: { ...process.env, ...env },
  });
  expect([stdout, stderr]).toEqual(["20 orders were taken, 40 items are left\n", ""]);
  const { sql } = server.database;
  const series =
    await sql`select metric, units, array(select jsonb_object_keys(labels) order by 1) as labels, count(*)::int
    from series where tenant_id = ${id} group by 1, 2, 3 order by 1`;
  const scope = "otel.scope.name";
  expect([...series]).toEqual([
    { metric: "shop.order.amount.bucket", units: "", labels: ["le", scope], count: 4 },
    ...["count", "max", "min", "sum"].map((name) => ({
      metric: `shop.order.amount.${name}`,
      units: name === "count" ? "" : "EUR",
      labels: [scope],
      count: 1,
    })),
    { metric: "shop.orders", units: "{order}", labels: [scope, "payment.method"], count: 2 },
    { metric: "shop.stock", units: "{item}", labels: [scope], count: 1 },
  ]);
  const [event] = await sql`select e.name, d.dimensions->>'service.name' as service from events e
    join entities d on d.tenant_id = e.tenant_id and d.id = e.entity_id where e.tenant_id = ${id}`;
  expect(event).toEqual({ name: "stock.low", service: "shop" });
});

test("examples/python does what it says", async ({ skip }) => {
  const pythons = ["python3", "/usr/bin/python3"];
  const python = pythons.find((name) => works(name, "-c", "import grpc, google.protobuf"));
  if (python === undefined) return skip("no python3 with grpcio: see examples/python/README.md");
  const env = { PYTHONPATH: join(folder, "generated"), PYTHONDONTWRITEBYTECODE: "1" };
  const plugin = works("protoc", "--version") && works("sh", "-c", "command -v grpc_python_plugin");
  skip(!plugin, "no protoc with grpc_python_plugin: see examples/python/README.md");
  const buf = join(root, "node_modules/.bin/buf");
  execFileSync(buf, ["generate", "--template", "examples/python/buf.gen.yaml", "-o", folder], { cwd: root });
  expect(await run(python, ["examples/python/tour.py"], env)).toMatch(
    tour("Python tour", "INVALID_ARGUMENT", "UNAUTHENTICATED"),
  );
});
