// A buf plugin: emits routes.ts and openapi.json from the google.api.http rules, or fails with the file, line and an
// example of each wrong one. It reads generated code (google.api), so protoc-gen-es runs before it.
import { createEcmaScriptPlugin, runNodeJs } from "@bufbuild/protoplugin";
import { type OpenApiOptions, openApi } from "./openapi.ts";
import { collectRoutes, printRoutes } from "./routes.ts";

const plugin = createEcmaScriptPlugin<OpenApiOptions>({
  name: "transcoding",
  version: "v1",
  parseOptions(given) {
    const options: Record<string, string> = { title: "API", version: "0", key_header: "" };
    for (const { key, value } of given) {
      if (!Object.hasOwn(options, key)) throw new Error(`there is no option ${key}`);
      options[key] = value;
    }
    const { title = "", version = "", key_header: keyHeader = "" } = options;
    return { title, version, keyHeader };
  },
  generateTs(schema) {
    const routes = collectRoutes(schema.files, (line) => process.stderr.write(`${line}\n`));
    printRoutes(schema, routes);
    schema.generateFile("openapi.json").print(JSON.stringify(openApi(routes, schema.options), undefined, 2));
  },
});

runNodeJs({
  ...plugin,
  run(request) {
    const given = request.parameter === "" ? [] : [request.parameter];
    request.parameter = ["target=ts", "import_extension=ts", ...given].join(",");
    return plugin.run(request);
  },
});
