import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { update_mask } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { optionOf } from "../../src/proto-option.ts";
import type { Route } from "../../src/transcoding/routes/binding.ts";
import { findTarget } from "../../src/transcoding/url/target.ts";
import { constraints } from "./constraints.ts";
import type { JsonSchema } from "./forms.ts";
import type { Schemas } from "./json-schema.ts";
import { patternOf } from "./paths.ts";
import type { Example } from "./texts.ts";
import { commentOf, described } from "./texts.ts";

const depthMax = 3;

/** The parameters of a route's path and query; `variables` are the names that the path gives its own. */
export function parametersOf(
  route: Route,
  variables: readonly string[],
  schemas: Schemas,
  example?: Example,
): JsonSchema[] {
  return [...pathParameters(route, variables, schemas, example), ...queryParameters(route, schemas, example)];
}

function pathParameters(route: Route, names: readonly string[], { value }: Schemas, example?: Example): JsonSchema[] {
  return route.variables.map((variable, i) => {
    const name = names[i] as string;
    const target = findTarget(route.method.input, variable.path);
    const field = "lacking" in target ? undefined : target.fields.at(-1);
    const pattern = patternOf(route, variable);
    const schema = field === undefined ? { type: "string" } : value(field, "request");
    return {
      name,
      in: "path",
      required: true,
      ...(field === undefined ? {} : described(commentOf(field), ...constraints(field).sentences)),
      // A path says numbers in digits alone.
      schema: { ...schema, ...(pattern === undefined ? {} : { pattern: `^${pattern}$` }) },
      ...exampleOf(example?.path, name),
    };
  });
}

function queryParameters(route: Route, schemas: Schemas, example?: Example): JsonSchema[] {
  const { input } = route.method;
  const taken = new Set([route.body, ...route.variables.map(({ path }) => path.join("."))]);
  if (route.body === "*") {
    const mask = optionOf(route.method, update_mask);
    for (const { name } of input.fields) if (name !== mask) taken.add(name);
  }
  return below(input, [], taken, schemas, example);
}

function below(
  message: DescMessage,
  above: DescField[],
  taken: ReadonlySet<string>,
  schemas: Schemas,
  example?: Example,
): JsonSchema[] {
  return message.fields.flatMap((field): JsonSchema[] => {
    const way = [...above, field];
    if (taken.has(way.map(({ name }) => name).join("."))) return [];
    const name = way.map(({ jsonName }) => jsonName).join(".");
    const target = findTarget(message, [field.name]);
    if (!("lacking" in target) && target.read !== undefined && !(field.fieldKind === "map" && field.message)) {
      const style = field.fieldKind === "map" ? { style: "deepObject", explode: true } : {};
      const { required, sentences } = constraints(field);
      return [
        {
          name,
          in: "query",
          ...(required && above.length === 0 ? { required: true } : {}),
          ...described(commentOf(field), ...sentences),
          ...style,
          schema: schemas.value(field, "request"),
          ...exampleOf(example?.query, name),
        },
      ];
    }
    const inner = field.fieldKind === "message" && !hasCustomJsonRepresentation(field.message);
    return inner && way.length < depthMax ? below(field.message, way, taken, schemas, example) : [];
  });
}

function exampleOf(values: Readonly<Record<string, unknown>> | undefined, name: string): JsonSchema {
  return values === undefined || !Object.hasOwn(values, name) ? {} : { example: values[name] };
}
