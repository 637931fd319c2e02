import type { DescFile, DescMethod } from "@bufbuild/protobuf";
import type { Schema } from "@bufbuild/protoplugin";
import { bindRoutes, type Problem, type Route } from "../../src/transcoding/routes/binding.ts";
import { findConflicts } from "../../src/transcoding/routes/conflicts.ts";

/**
 * The routes of all files to generate. Throws one Error that lists every problem with file, line and an example;
 * what is only a warning goes to `warn`.
 */
export function collectRoutes(files: readonly DescFile[], warn: (line: string) => void): Route[] {
  const { routes, problems } = bindRoutes(files.flatMap(({ services }) => services));
  const { errors, warnings } = findConflicts(routes);
  for (const warning of warnings) warn(`warning: ${located(warning)}`);
  const all = [...problems, ...errors];
  if (all.length > 0) throw new Error(`${all.length} wrong HTTP rules\n${all.map(located).join("\n")}`);
  return routes;
}

/** Writes `routes.ts`: one table of all routes, each with the descriptor of its RPC. */
export function printRoutes(schema: Schema, routes: readonly Route[]): void {
  const file = schema.generateFile("routes.ts");
  file.print("// Made by scripts/transcoding/main.ts from the google.api.http rules. Segments: 1 is `*`, 2 is `**`.");
  file.print();
  file.print("export const routes = [");
  for (const { method, ...rest } of routes) {
    file.print("  // ", rest.verb, " ", rest.template);
    file.print(
      "  { method: ",
      file.importSchema(method.parent),
      ".method.",
      method.localName,
      ", ",
      members(rest),
      " },",
    );
  }
  file.print("] as const;");
}

function members(route: object): string {
  return Object.entries(route)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join(", ");
}

function located({ method, message, example }: Problem): string {
  return `${method.parent.file.name}.proto:${lineOf(method)}: ${method.parent.typeName}.${method.name}: ${message} (for example: ${example})`;
}

/** The line of the RPC's google.api.http option, else that of the RPC. */
function lineOf(method: DescMethod): number {
  const service = method.parent;
  const place = [6, service.file.services.indexOf(service), 2, service.methods.indexOf(method)];
  const locations = service.file.proto.sourceCodeInfo?.location ?? [];
  const at = (path: number[]) => locations.find((location) => location.path.join() === path.join())?.span[0];
  return (at([...place, 4, 72295728]) ?? at(place) ?? 0) + 1;
}
