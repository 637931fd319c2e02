// A buf plugin: emits routes.ts from the google.api.http rules, or fails with the file, line and an example of each
// wrong one. It reads generated code (google.api), so protoc-gen-es runs before it.
import { createEcmaScriptPlugin, runNodeJs } from "@bufbuild/protoplugin";
import { collectRoutes, printRoutes } from "./routes.ts";

const plugin = createEcmaScriptPlugin({
  name: "transcoding",
  version: "v1",
  generateTs(schema) {
    const routes = collectRoutes(schema.files, (line) => process.stderr.write(`${line}\n`));
    printRoutes(schema, routes);
  },
});

runNodeJs({
  ...plugin,
  run(request) {
    if (request.parameter === "") request.parameter = "target=ts,import_extension=ts";
    return plugin.run(request);
  },
});
