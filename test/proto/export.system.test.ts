import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { clearField, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  FieldOptionsSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, expect, test } from "vitest";
import { schemaCommand } from "../../src/cli/schema.ts";
import { temporaryDir } from "../support/database.ts";

const root = join(import.meta.dirname, "../..");
const dir = temporaryDir();
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const schema = join(dir, "schema");
schemaCommand(["schema", "export", schema]);
const files = globSync("**/*.proto", { cwd: schema }).sort();
const own = files.filter((path) => path.startsWith("belfry/"));

const run = (program: string, args: readonly string[], cwd: string) =>
  execFileSync(program, args, {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, PATH: `${root}/node_modules/.bin:${process.env.PATH}` },
  });

/** The files of a schema as buf compiles them, by path. */
function compiled(cwd: string, input: string) {
  const image = join(dir, "image.binpb");
  run("buf", ["build", input, "--as-file-descriptor-set", "--exclude-source-info", "-o", image], cwd);
  const { file } = fromBinary(FileDescriptorSetSchema, readFileSync(image));
  return new Map(file.map((descriptor) => [descriptor.name, descriptor]));
}

function withoutRedaction({ field, nestedType }: DescriptorProto) {
  for (const one of field) {
    if (one.options === undefined) continue;
    clearField(one.options, FieldOptionsSchema.field.debugRedact);
    if (toBinary(FieldOptionsSchema, one.options).length === 0) delete one.options;
  }
  nestedType.forEach(withoutRedaction);
}

test("the exported schema says what proto/ says, but for go_package and debug_redact", () => {
  const [ours, exported] = [compiled(root, "proto"), compiled(schema, ".")];
  expect(own.length).toBeGreaterThan(30);
  for (const path of own) {
    const [was, is] = [ours.get(path), exported.get(path)];
    if (was === undefined || is === undefined) throw new Error(`${path} was not compiled`);
    const [, domain, version] = path.split("/");
    expect(is.options?.goPackage).toBe(`belfry.example/gen/belfry/${domain}/${version};${domain}${version}`);
    expect(is.options?.javaMultipleFiles).toBe(true);
    delete is.options;
    was.messageType.forEach(withoutRedaction);
    is.messageType.forEach(withoutRedaction);
    expect(bytes(is), path).toEqual(bytes(was));
  }
});

const bytes = (file: FileDescriptorProto) => Buffer.from(toBinary(FileDescriptorProtoSchema, file));

test("it holds everything that it imports, and the details of errors", () => {
  expect(files).toContain("google/rpc/error_details.proto");
  const imports = files.flatMap((path) => [...readFileSync(join(schema, path), "utf8").matchAll(/^import "(.+)";$/gm)]);
  const missing = imports.map(([, path = ""]) => path).filter((path) => !files.includes(path));
  // What each generator brings along.
  expect(missing.filter((path) => !path.startsWith("google/protobuf/"))).toEqual([]);
});

test("protobufjs, which parses by itself, reads it", () => {
  const loaded = loadSync(own, { includeDirs: [schema] });
  expect(loaded["belfry.receiver.v1.DataReceiverService"]).toHaveProperty("PutEvents");
});

test("protoc reads it, and generates what it can by itself", ({ skip }) => {
  try {
    run("protoc", ["--version"], schema);
  } catch {
    return skip("protoc is not installed");
  }
  const languages = ["cpp", "csharp", "java", "objc", "python", "ruby"];
  const outs = languages.map((language) => {
    mkdirSync(join(dir, language));
    return `--${language}_out=${join(dir, language)}`;
  });
  run("protoc", ["-I", ".", ...outs, ...files], schema);
  for (const language of languages)
    expect(globSync(`${dir}/${language}/**/*.*`).length, language).toBeGreaterThan(own.length / 2);
});

test("buf and protoc-gen-es make TypeScript of it, as docs/sdks.md says, that Node.js runs as it is", () => {
  const [, template = ""] =
    /^## TypeScript$.*?^```yaml\n(.*?)^```/ms.exec(readFileSync(join(root, "docs/sdks.md"), "utf8")) ?? [];
  writeFileSync(join(dir, "buf.gen.yaml"), template);
  writeFileSync(join(dir, "package.json"), '{"type":"module"}');
  symlinkSync(join(root, "node_modules"), join(dir, "node_modules"));
  run("buf", ["generate"], dir);
  const program = `
    import { create, toBinary } from "@bufbuild/protobuf";
    import { PutEventsRequestSchema } from "./gen/belfry/receiver/v1/receiver_service_pb.ts";
    import { BadRequestSchema } from "./gen/google/rpc/error_details_pb.ts";
    console.log(toBinary(PutEventsRequestSchema, create(PutEventsRequestSchema, { detailedResponse: true })).length, BadRequestSchema.typeName);`;
  writeFileSync(join(dir, "try.ts"), program);
  expect(run(process.execPath, ["try.ts"], dir)).toBe("2 google.rpc.BadRequest\n");
});

test("a folder that holds something is left alone, and a wrong command is none", () => {
  expect(() => schemaCommand(["schema", "export", schema])).toThrow("is not empty");
  for (const args of [
    [],
    ["export"],
    ["import", "x"],
    ["export", "x", "--what"],
    ["export", "x", "--go-package-prefix", 'a"b'],
  ])
    expect(schemaCommand(["schema", ...args]), args.join(" ")).toBeUndefined();
});
