import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

interface Generated {
  ok: boolean;
  said: string;
  routes: string;
  // biome-ignore lint/suspicious/noExplicitAny: the tests walk the document
  document: any;
}

/** Runs `buf generate` with the plugin on a service with these RPCs for each package. The first RPC stands on line 5. */
async function generateAll(packages: Record<string, string>): Promise<Generated> {
  const folder = mkdtempSync(join(tmpdir(), "routes-"));
  try {
    mkdirSync(join(folder, "google/api"), { recursive: true });
    for (const file of ["google/api/annotations.proto", "google/api/http.proto"]) {
      copyFileSync(join(root, "node_modules/google-proto-files", file), join(folder, file));
    }
    writeFileSync(join(folder, "buf.yaml"), "version: v2\n");
    const plugin = { local: ["node", join(root, "scripts/transcoding/main.ts")], out: "out", strategy: "all" };
    writeFileSync(join(folder, "buf.gen.yaml"), JSON.stringify({ version: "v2", plugins: [plugin] }));
    for (const [name, rpcs] of Object.entries(packages)) {
      writeFileSync(
        join(folder, `${name}.proto`),
        `syntax = "proto3";\npackage ${name};\nimport "google/api/annotations.proto";\nservice Shop {\n${rpcs}\n}\n${messages}`,
      );
    }
    const env = { ...process.env, PATH: `${join(root, "node_modules/.bin")}${delimiter}${process.env.PATH}` };
    try {
      const { stderr } = await run("buf", ["generate"], { cwd: folder, env });
      const made = (name: string) => readFileSync(join(folder, "out", name), "utf8");
      return { ok: true, said: stderr, routes: made("routes.ts"), document: JSON.parse(made("openapi.json")) };
    } catch (error) {
      return { ok: false, said: (error as { stderr: string }).stderr, routes: "", document: undefined };
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const generate = (rpcs: string) => generateAll({ shop: rpcs });

const messages = `
message Req { string id = 1; string other = 2; repeated string list = 3; map<string, string> map = 4; Req inner = 5; }
message Res { string id = 1; }
`;

/** An RPC with a rule, on one line. */
const rpc = (name: string, rule: string, types = "(Req) returns (Res)") =>
  `rpc ${name}${types} { option (google.api.http) = {${rule}}; }`;

interface Wrong {
  what: string;
  rpcs: string[];
  line?: number;
  says: string;
  example: string;
}
const refused = (what: string, rule: string, says: string, example: string): Wrong => ({
  what,
  rpcs: [rpc("A", rule)],
  says,
  example,
});
const wrong: Wrong[] = [
  {
    what: "the same route twice",
    rpcs: [rpc("A", 'get: "/v1/things/{id}"'), rpc("B", 'get: "/v1/things/{other=*}"')],
    line: 6,
    says: "shop.Shop.B: /v1/things/{other=*}: the same route as /v1/things/{id} of shop.Shop.A",
    example: "GET /v1/things/any",
  },
  refused(
    "the same route twice, by an additional binding",
    'get: "/v1/a" additional_bindings {get: "/v1/%61"}',
    "the same route as /v1/a",
    "GET /v1/a",
  ),
  {
    what: "a route that others always shadow",
    rpcs: [rpc("A", 'get: "/v1/a"'), rpc("B", 'get: "/v1/a/{id}/{other=**}"'), rpc("C", 'get: "/v1/a/{id=**}"')],
    line: 7,
    says: "no request reaches it, always won by /v1/a of shop.Shop.A and /v1/a/{id}/{other=**} of shop.Shop.B",
    example: "GET /v1/a/any1",
  },
  refused(
    "a variable inside a variable",
    'get: "/v1/{id=x/{other}}"',
    "a variable stands inside a variable",
    "GET /v1/",
  ),
  refused("** not last", 'get: "/v1/{id=**}/end"', "** may only be the last segment", "GET /v1/a/end"),
  refused("a body on GET", 'get: "/v1/a" body: "*"', "GET takes no body", "GET /v1/a"),
  refused("a body on DELETE", 'delete: "/v1/a" body: "inner"', "DELETE takes no body", "DELETE /v1/a"),
  refused("a path variable that is repeated", 'get: "/v1/{list}"', "path variable {list} is repeated", "GET /v1/a"),
  refused("a path variable that occurs twice", 'get: "/v1/{id}/{id}"', "{id} occurs twice", "GET /v1/a/a"),
  refused("a path variable that is a map", 'get: "/v1/{map}"', "path variable {map} is a map", "GET /v1/a"),
  refused("a path variable that is a message", 'get: "/v1/{inner}"', "path variable {inner} is a message", "GET /v1/a"),
  refused("a path variable through a list", 'get: "/v1/{list.id}"', "path variable {list.id} is repeated", "GET /v1/a"),
  refused("a path variable of an unknown field", 'get: "/v1/{nope}"', "shop.Req has no field nope", "GET /v1/a"),
  refused(
    "a path variable below an unknown field",
    'get: "/v1/{inner.nope}"',
    "shop.Req has no field nope",
    "GET /v1/a",
  ),
  refused(
    'body: "a.b"',
    'post: "/v1/a" body: "inner.id"',
    'body: "inner.id" must be a field of shop.Req itself',
    "POST /v1/a",
  ),
  refused("a body of an unknown field", 'post: "/v1/a" body: "nope"', "body: shop.Req has no field nope", "POST /v1/a"),
  refused(
    "a body that is a path variable too",
    'post: "/v1/{id}" body: "id"',
    "body: id is a path variable too",
    "POST /v1/a",
  ),
  refused(
    "a response_body of an unknown field",
    'get: "/v1/a" response_body: "nope"',
    "response_body: shop.Res has no field nope",
    "GET /v1/a",
  ),
  refused("a path without a slash", 'get: "v1/a"', "a path starts with a slash", "GET v1/a"),
  refused("an empty segment", 'get: "/v1//a"', "a segment is empty", "GET /v1//a"),
  refused("a brace that is not closed", 'get: "/v1/{id"', "a { is not closed", "GET /v1/id"),
  refused("a variable beside text in its segment", 'get: "/v1/{id}x"', "a variable takes whole segments", "GET /v1/ax"),
  refused("a literal that no path holds", 'get: "/v1/a b"', "has a character that a path cannot hold", "GET /v1/a b"),
  refused("a rule without a path", 'body: "*"', "the rule has no path", ""),
  refused(
    "bindings inside bindings",
    'get: "/v1/a" additional_bindings {get: "/v1/b" additional_bindings {get: "/v1/c"}}',
    "additional_bindings may not be nested",
    "GET /v1/b",
  ),
  {
    what: "a stream of requests",
    rpcs: [rpc("A", 'post: "/v1/{id}" body: "*"', "(stream Req) returns (Res)")],
    says: "a stream of requests has no form here",
    example: "POST /v1/a",
  },
];

describe("generation fails, with file, line and an example, on", async () => {
  // All in one run of buf: each in a package of its own, whose name begins its routes.
  const own = (text: string, i: number) => text.replaceAll(/\b(shop|v1)\b/g, `case${i}`);
  const { ok, said } = await generateAll(
    Object.fromEntries(wrong.map(({ rpcs }, i) => [`case${i}`, own(rpcs.join("\n"), i)])),
  );
  const lines = said.split("\n");

  test.for(wrong.map((each, i) => ({ ...each, i })))("$what", ({ i, line = 5, says, example }) => {
    expect(ok).toBe(false);
    const told = lines.filter((text) => text.includes(`case${i}.proto:`));
    expect(told).toHaveLength(1);
    expect(told[0]).toContain(own(`shop.proto:${line}: shop.Shop.`, i));
    expect(told[0]).toContain(own(says, i));
    expect(told[0]).toContain(own(`(for example: ${example}`, i));
  });
});

test("all that is wrong is said at once", async () => {
  const { said } = await generate([rpc("A", 'get: "/v1/{nope}"'), rpc("B", 'get: "/v1/a" body: "*"')].join("\n"));
  expect(said).toContain("2 wrong HTTP rules");
  expect(said).toContain("shop.proto:5: shop.Shop.A:");
  expect(said).toContain("shop.proto:6: shop.Shop.B:");
});

test("overlap that is not nested is a warning with an example path, and the routes are made", async () => {
  const rpcs = [rpc("A", 'get: "/v1/a/{id}"'), rpc("B", 'get: "/v1/{id}/b"'), rpc("C", 'get: "/v1/{id}"')];
  const { ok, said, routes } = await generate(rpcs.join("\n"));
  expect(ok).toBe(true);
  expect(said).toMatch(
    /warning: shop\.proto:6: shop\.Shop\.B: \/v1\/\{id\}\/b: overlaps with \/v1\/a\/\{id\} of shop\.Shop\.A; \/v1\/a\/\{id\} .*answers \(for example: GET \/v1\/a\/b\)/,
  );
  expect(said.match(/warning:/g)).toHaveLength(1);
  expect(routes).toContain("method: Shop.method.a");
  expect(routes).toContain('segments: ["v1",1,"b"]');
});

describe("in the OpenAPI document", () => {
  const one = (path: string, verb = "get") => rpc(`R${verb}${path.replace(/\W/g, "")}`, `${verb}: "${path}"`);

  /** Each path with its operations' variables, and the patterns of those. */
  async function variables(rpcs: string[]) {
    const { document } = await generate(rpcs.join("\n"));
    const paths = Object.entries(document.paths as Record<string, Record<string, Generated["document"]>>);
    return paths.map(([path, verbs]) => [
      path,
      ...Object.values(verbs).flatMap(({ parameters }) =>
        parameters
          .filter((parameter: { in: string }) => parameter.in === "path")
          .map(({ name, schema }: Generated["document"]) => [name, schema.pattern].filter(Boolean).join(" ")),
      ),
    ]);
  }

  test("shapes that are written alike stand side by side, each with its pattern", async () => {
    const rpcs = [one("/v1/{id=items/*}"), one("/v1/{id=projects/*/blobs/*}"), one("/v1/{id=files/**}:show")];
    expect(await variables(rpcs)).toEqual([
      ["/v1/{id}", "id ^items/[^/]+$"],
      ["/v1/{id_1}", "id_1 ^projects/[^/]+/blobs/[^/]+$"],
      ["/v1/{id}:show", "id ^files/.*$"],
    ]);
  });

  test("two variables of one last name have different names", async () => {
    expect(await variables([one("/v1/groups/{inner.id}/members/{id}")])).toEqual([
      ["/v1/groups/{inner.id}/members/{id}", "inner.id", "id"],
    ]);
  });

  test("operations of one shape share their path", async () => {
    const rpcs = [one("/v1/things/{id}"), one("/v1/things/{inner.id}", "delete")];
    expect(await variables(rpcs)).toEqual([["/v1/things/{id}", "id", "id"]]);
  });
});
