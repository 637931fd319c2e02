import type { Route } from "../../src/transcoding/routes/binding.ts";
import { MANY, type PathSegment, type Variable } from "../../src/transcoding/routes/template.ts";

/** The path of a route in OpenAPI's form, and the names of its variables. */
export interface PathName {
  readonly path: string;
  readonly variables: readonly string[];
}

/**
 * Names the paths of a document one after the other. A variable is called by its last name, `{id}` for `thing.id`; by all of
 * them where that name is taken in its path. Paths of one shape share the names of their variables, as OpenAPI asks. Two
 * shapes that OpenAPI writes alike, as `{name=items/*}` and `{name=blobs/*}`, get numbers: `{name}`, `{name_1}`, as
 * grpc-gateway's generator does.
 */
export function pathNames(): (route: Route) => PathName {
  const byShape = new Map<string, PathName>();
  const taken = new Set<string>();
  return (route) => {
    const shape = JSON.stringify([route.segments, route.custom, route.variables.map(({ start, end }) => [start, end])]);
    const known = byShape.get(shape);
    if (known !== undefined) return known;
    const own = variableNames(route.variables);
    let name = written(route, own);
    for (let i = 1; taken.has(name.path); i++) name = written(route, [`${own[0]}_${i}`, ...own.slice(1)]);
    byShape.set(shape, name);
    taken.add(name.path);
    return name;
  };
}

/** The pattern of a variable that is not one segment, as a regular expression: `shelves/[^/]+/books/[^/]+`. */
export function patternOf({ segments }: Route, { start, end }: Variable): string | undefined {
  const own = segments.slice(start, end === -1 ? undefined : end);
  if (own.length === 1 && own[0] !== MANY && typeof own[0] !== "string") return undefined;
  return own.map(expression).join("/");
}

function expression(segment: PathSegment): string {
  if (typeof segment === "string") return segment.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  return segment === MANY ? ".*" : "[^/]+";
}

function variableNames(variables: readonly Variable[]): string[] {
  const last = variables.map(({ path }) => path.at(-1) as string);
  return variables.map(({ path }, i) => {
    const alone = last.filter((name) => name === last[i]).length === 1 || path.length === 1;
    return alone ? (last[i] as string) : path.join(".");
  });
}

function written({ segments, custom, variables }: Route, names: readonly string[]): PathName {
  const parts: string[] = [];
  for (let i = 0; i < segments.length; i++) {
    const at = variables.findIndex(({ start }) => start === i);
    const variable = variables[at];
    if (variable === undefined) parts.push(typeof segments[i] === "string" ? (segments[i] as string) : "*");
    else {
      parts.push(`{${names[at]}}`);
      i = variable.end === -1 ? segments.length : variable.end - 1;
    }
  }
  return { path: `/${parts.join("/")}${custom === "" ? "" : `:${custom}`}`, variables: names };
}
