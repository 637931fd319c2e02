import {
  createRegistry,
  type DescField,
  type DescFile,
  type DescMethod,
  type DescService,
  type Registry,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { also_read_as, not_empty_if_present, seconds } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { file_google_rpc_error_details } from "#gen/google/rpc/error_details_pb.ts";
import type { Pace } from "../event-loop.ts";
import { optionOf } from "../proto-option.ts";
import type { CountLimits } from "../wire/message-limits.ts";
import { longFields, textInPortions } from "../wire/write-message.ts";
import { statusOverrides } from "./error-text.ts";
import { holdsHttpBody, isHttpBody } from "./http-body.ts";
import { jsonReader } from "./json/read-json.ts";
import type { MessageValues } from "./json/values.ts";
import { type JsonWriter, jsonWriter } from "./json/write-json.ts";
import { type RequestReader, requestReader } from "./request.ts";
import { fieldNamed, type Route } from "./routes/binding.ts";
import { valueIn } from "./url/target.ts";

/** An RPC's implementation, as Connect calls it. */
export type RouteHandler = (input: unknown, context: HandlerContext) => unknown;

/** All that a route needs for its requests, made once. */
export interface RoutePlan {
  readonly route: Route;
  readonly handler: RouteHandler;
  readonly overrides: ReadonlyMap<number, number>;
  readonly reader: RequestReader;
  /** Whether the RPC answers with a stream. */
  readonly streams: boolean;
  /** The part of a response that is sent. */
  answerOf(response: MessageValues): unknown;
  /** Whether that part is google.api.HttpBody, else `write` writes it. */
  readonly rawAnswer: boolean;
  write(value: unknown): string;
  /** The same for a value with long lists, in slices; undefined when it has none. */
  writeLarge(value: unknown, pace: Pace): string | Promise<string> | undefined;
}

interface PlannerOptions {
  services: readonly { service: DescService; implementation: Partial<ServiceImpl<DescService>> }[];
  registry?: Registry;
  unknownFields?: "refuse" | "ignore";
  /** Bounds of one message of an RPC as a whole. */
  limitsOf(method: DescMethod): CountLimits;
}

/** Compiles plans, with one set of readers and writers for all of them. */
export function planner({ services, registry: given, unknownFields = "refuse", limitsOf }: PlannerOptions): {
  planOf(route: Route): RoutePlan;
  registry: Registry;
  writer: JsonWriter;
} {
  const registry = given ?? registryOf(services.map(({ service }) => service));
  const reader = jsonReader({
    registry,
    notEmptyIfPresent: (field) => optionOf(field, not_empty_if_present),
    otherNames: (field) => optionOf(field, also_read_as),
    takesDurations: (field) => optionOf(field, seconds),
  });
  const writer = jsonWriter(registry);
  const implementations = new Map(services.map(({ service, implementation }) => [service.typeName, implementation]));
  return { planOf, registry, writer };

  function planOf(route: Route): RoutePlan {
    const { method } = route;
    const implementation = implementations.get(method.parent.typeName) as Record<string, RouteHandler> | undefined;
    const field = route.responseBody === "" ? undefined : fieldNamed(method.output, route.responseBody);
    const rawAnswer = field === undefined ? isHttpBody(method.output) : holdsHttpBody(field);
    return {
      route,
      handler: implementation?.[method.localName]?.bind(implementation) ?? unimplemented(route),
      overrides: statusOverrides(method),
      reader: requestReader(route, reader, unknownFields, limitsOf(method)),
      streams: method.methodKind === "server_streaming",
      answerOf: field === undefined ? (response) => response : (response) => valueIn(response, field),
      rawAnswer,
      write: answerWriter(route, field),
      writeLarge(value, pace) {
        if (field !== undefined || longFields(method.output, value as MessageValues).length === 0) return undefined;
        return textInPortions(writer, method.output, value as MessageValues, pace);
      },
    };
  }

  function answerWriter({ method }: Route, field: DescField | undefined): (value: unknown) => string {
    const write = field === undefined ? writer.message(method.output) : writer.field(field);
    return (value) => JSON.stringify(write(value as MessageValues));
  }
}

function unimplemented({ method }: Route): RouteHandler {
  return () => {
    throw new ConnectError(`${method.parent.typeName}.${method.name} is not implemented`, Code.Unimplemented);
  };
}

/** All types of these services' files and of what they import, and the usual details of errors. */
function registryOf(services: readonly DescService[]): Registry {
  const files = new Set<DescFile>();
  const add = (file: DescFile) => {
    if (files.has(file)) return;
    files.add(file);
    for (const dependency of file.dependencies) add(dependency);
  };
  add(file_google_rpc_error_details);
  for (const service of services) add(service.file);
  return createRegistry(...files);
}
