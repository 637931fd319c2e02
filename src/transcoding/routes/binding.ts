import { type DescField, type DescMessage, type DescMethod, type DescService, hasOption } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { http } from "#gen/google/api/annotations_pb.ts";
import type { HttpRule } from "#gen/google/api/http_pb.ts";
import { optionOf } from "../../proto-option.ts";
import { examplePath, type PathSegment, parsePathTemplate, type Variable } from "./template.ts";

/** One way to reach an RPC over HTTP. */
export interface Route {
  readonly method: DescMethod;
  /** GET, POST …; `*` for any method. */
  readonly verb: string;
  readonly template: string;
  readonly segments: readonly PathSegment[];
  readonly custom: string;
  readonly variables: readonly Variable[];
  /** "" for none, `*` for the whole request, else the name of a field of the request. */
  readonly body: string;
  /** "" for the whole response, else the name of a field of it. */
  readonly responseBody: string;
}

/** A rule that cannot become a route; `example` is a request line that it was meant for. */
export interface Problem {
  readonly method: DescMethod;
  readonly message: string;
  readonly example: string;
}

const bodiless = new Set(["GET", "DELETE", "HEAD"]);
const token = /^(?:\*|[A-Z][A-Z0-9-]*)$/;

/** The routes that google.api.http declares on the RPCs of these services, in order, and what is wrong with the others. */
export function bindRoutes(services: Iterable<DescService>): { routes: Route[]; problems: Problem[] } {
  const routes: Route[] = [];
  const problems: Problem[] = [];
  for (const service of services) {
    for (const method of service.methods) {
      if (!hasOption(method, http)) continue;
      const rule = optionOf(method, http);
      bind(method, rule);
      for (const additional of rule.additionalBindings) {
        if (additional.additionalBindings.length > 0) {
          problem(method, additional, "additional_bindings may not be nested");
        }
        bind(method, additional);
      }
    }
  }
  return { routes, problems };

  function bind(method: DescMethod, rule: HttpRule): void {
    try {
      routes.push(bindRule(method, rule));
    } catch (error) {
      problem(method, rule, (error as Error).message);
    }
  }

  function problem(method: DescMethod, rule: HttpRule, message: string): void {
    const { verb, template } = pattern(rule);
    problems.push({ method, message, example: `${verb} ${examplePath(template)}` });
  }
}

function pattern(rule: HttpRule): { verb: string; template: string } {
  switch (rule.pattern.case) {
    case undefined:
      return { verb: "", template: "" };
    case "custom":
      return { verb: rule.pattern.value.kind, template: rule.pattern.value.path };
    default:
      return { verb: rule.pattern.case.toUpperCase(), template: rule.pattern.value };
  }
}

function bindRule(method: DescMethod, rule: HttpRule): Route {
  const { verb, template } = pattern(rule);
  if (verb === "") throw new Error("the rule has no path");
  if (!token.test(verb)) throw new Error(`${JSON.stringify(verb)} is no HTTP method`);
  const { segments, custom, variables } = parsePathTemplate(template);
  for (const variable of variables) checkVariable(method.input, variable);
  checkBody(method, verb, rule.body, variables);
  if (rule.responseBody !== "") topLevelField(method.output, rule.responseBody, "response_body");
  return { method, verb, template, segments, custom, variables, body: rule.body, responseBody: rule.responseBody };
}

function checkVariable(input: DescMessage, variable: Variable): void {
  const name = variable.path.join(".");
  let message: DescMessage = input;
  for (const [i, part] of variable.path.entries()) {
    const field = fieldNamed(message, part);
    if (field === undefined) throw new Error(`path variable {${name}}: ${message.typeName} has no field ${part}`);
    if (field.fieldKind === "list") throw new Error(`path variable {${name}} is repeated`);
    if (field.fieldKind === "map") throw new Error(`path variable {${name}} is a map`);
    if (i === variable.path.length - 1) {
      if (field.fieldKind === "message") throw new Error(`path variable {${name}} is a message`);
      return;
    }
    if (field.fieldKind !== "message" || hasCustomJsonRepresentation(field.message)) {
      throw new Error(`path variable {${name}}: ${part} is no message with fields`);
    }
    message = field.message;
  }
}

function checkBody(method: DescMethod, verb: string, body: string, variables: readonly Variable[]): void {
  if (method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming")
    throw new Error("a stream of requests has no form here");
  if (body === "") return;
  if (bodiless.has(verb)) throw new Error(`${verb} takes no body`);
  if (body === "*") return;
  const field = topLevelField(method.input, body, "body");
  if (variables.some(({ path }) => path.length === 1 && path[0] === field.name)) {
    throw new Error(`body: ${field.name} is a path variable too`);
  }
}

function topLevelField(message: DescMessage, name: string, where: string): DescField {
  if (name.includes("."))
    throw new Error(`${where}: ${JSON.stringify(name)} must be a field of ${message.typeName} itself`);
  const field = fieldNamed(message, name);
  if (field === undefined) throw new Error(`${where}: ${message.typeName} has no field ${name}`);
  return field;
}

/** The field of this proto name. */
export function fieldNamed(message: DescMessage, name: string): DescField | undefined {
  return message.fields.find((field) => field.name === name);
}
