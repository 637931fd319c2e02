import { globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { SettingError } from "../config/parsers.ts";

const root = resolve(import.meta.dirname, "../..");
/** Beside what the services import: the details of errors, which no message names. */
const further = ["google/rpc/error_details.proto", "google/rpc/status.proto"];

const goPackagePrefixDefault = "belfry.example/gen";

/** How the command of this file is called. */
export const schemaUsage = [
  [
    "schema export <folder> [--go-package-prefix <import path>]",
    "write the proto files with all that they import, for any generator",
  ],
] as const;

/**
 * Writes the whole schema with all that it imports into a folder that is new or empty; what `google/protobuf` holds comes with
 * every generator. Returns what to print; undefined when the command line is not about the schema.
 * @throws SettingError when the folder is not empty
 */
export function schemaCommand(args: readonly string[]): string | undefined {
  const asked = read(args);
  if (asked === undefined) return undefined;
  const { folder, prefix } = asked;
  const schema = exportedSchema(prefix);
  mkdirSync(folder, { recursive: true });
  if (readdirSync(folder).length > 0) throw new SettingError(`schema export: ${folder} is not empty`);
  for (const [path, text] of schema) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return `${schema.size} files in ${folder}\n`;
}

function read(args: readonly string[]): { folder: string; prefix: string } | undefined {
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { "go-package-prefix": { type: "string", default: goPackagePrefixDefault } },
    });
    const [group, verb, folder, ...rest] = positionals;
    const prefix = values["go-package-prefix"].replace(/\/+$/, "");
    const wellFormed =
      group === "schema" && verb === "export" && folder && rest.length === 0 && /^[\w./~-]+$/.test(prefix);
    if (wellFormed) return { folder, prefix };
    return undefined;
  } catch {
    return undefined; // an option that it does not have
  }
}

/** The files of the schema by the path that they are imported by. */
export function exportedSchema(goPackagePrefix = goPackagePrefixDefault): Map<string, string> {
  const own = globSync("belfry/**/*.proto", { cwd: join(root, "proto") }).sort();
  const files = new Map(
    own.map((path) => [path, forAnyGenerator(readFileSync(join(root, "proto", path), "utf8"), path, goPackagePrefix)]),
  );
  const wanted = [...[...files.values()].flatMap(importsOf), ...further];
  for (let path = wanted.shift(); path !== undefined; path = wanted.shift()) {
    if (files.has(path) || path.startsWith("google/protobuf/")) continue;
    const text = readFileSync(join(root, "gen", path), "utf8");
    files.set(path, text);
    wanted.push(...importsOf(text));
  }
  return files;
}

const importsOf = (text: string) => [...text.matchAll(/^import "([^"]+)";$/gm)].map(([, path = ""]) => path);

/**
 * A file of ours as every generator reads it: without `debug_redact`, which protoc knows from version 22 on and which says nothing
 * about the wire; with a `go_package`, which Go's generator wants, and a class of its own for each message in Java; without words to
 * our linter.
 */
function forAnyGenerator(text: string, path: string, goPackagePrefix: string): string {
  const [, domain = "", version = ""] = path.split("/");
  const options = [
    `option go_package = "${goPackagePrefix}/${dirname(path)};${domain}${version}";`,
    "option java_multiple_files = true;",
  ];
  return text
    .replace(/\bdebug_redact = true,\s*|,\s*debug_redact = true\b| \[debug_redact = true\]/g, "")
    .replace(/^[ \t]*\/\/ buf:lint:ignore .*\n/gm, "")
    .replace(/^package .+;$/m, (line) => [line, "", ...options].join("\n"));
}
