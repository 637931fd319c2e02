// A buf plugin: emits routes.ts and openapi.json from the google.api.http rules, or fails with the file, line and an
// example of each wrong one. It reads generated code (google.api), so protoc-gen-es runs before it.
import { readFileSync } from "node:fs";
import { createEcmaScriptPlugin, runNodeJs, type Schema } from "@bufbuild/protoplugin";
import type { JsonSchema } from "./forms.ts";
import { type OpenApiOptions, openApiDocument } from "./openapi.ts";
import { collectRoutes, printRoutes } from "./routes.ts";
import { callers, readExamples } from "./texts.ts";

/** Options of the plugin, with what they say when they are left out. Paths are relative to where buf runs. */
const defaults = {
  title: "API",
  version: "0",
  /** The header that carries the key, if each call needs one. */
  key_header: "",
  /** A Markdown file that stands before all operations. */
  introduction: "",
  /** The licence, as SPDX names it. */
  license: "",
  /** A folder of example files. */
  examples: "",
  /** The name of an option of RPCs whose value is an enum: the comments of its values say which keys may call. */
  callers: "",
  /** The name of the value of that option whose RPCs take no key. */
  keyless: "",
  /** A file with tags and paths in OpenAPI's form, of what is served beside the RPCs. */
  beside: "",
};
type Options = typeof defaults & { readonly titles: ReadonlyMap<string, string> };

const plugin = createEcmaScriptPlugin<Options>({
  name: "transcoding",
  version: "v1",
  parseOptions(given) {
    const options: Record<string, string> = { ...defaults };
    const titles = new Map<string, string>();
    for (const { key, value } of given) {
      // tag=<service>:<title>, in the order of the document.
      const [service = "", title = ""] = value.split(":");
      if (key === "tag") titles.set(service, title);
      else if (Object.hasOwn(options, key)) options[key] = value;
      else throw new Error(`there is no option ${key}`);
    }
    return { ...(options as typeof defaults), titles };
  },
  generateTs(schema) {
    const routes = collectRoutes(schema.files, (line) => process.stderr.write(`${line}\n`));
    printRoutes(schema, routes);
    const document = withBeside(openApiDocument(routes, openApiOptions(schema)), schema.options.beside);
    schema.generateFile("openapi.json").print(JSON.stringify(document, undefined, 2));
  },
});

/** The document with the tags and paths of a file at its end. */
function withBeside(document: JsonSchema, file: string): JsonSchema {
  if (file === "") return document;
  const { tags, paths } = JSON.parse(readFileSync(file, "utf8")) as { tags: object[]; paths: object };
  return {
    ...document,
    tags: [...(document.tags as object[]), ...tags],
    paths: { ...(document.paths as object), ...paths },
  };
}

function openApiOptions({ options, allFiles }: Schema<Options>): OpenApiOptions {
  const { title, version, key_header: keyHeader, introduction, license, examples, titles } = options;
  return {
    title,
    version,
    keyHeader,
    introduction: introduction === "" ? "" : readFileSync(introduction, "utf8").trim(),
    ...(license === "" ? {} : { license }),
    titles,
    examples: examples === "" ? new Map() : readExamples(examples),
    ...(options.callers === "" ? {} : callers(allFiles, options.callers, options.keyless)),
  };
}

runNodeJs({
  ...plugin,
  run(request) {
    const given = request.parameter === "" ? [] : [request.parameter];
    request.parameter = ["target=ts", "import_extension=ts", ...given].join(",");
    return plugin.run(request);
  },
});
