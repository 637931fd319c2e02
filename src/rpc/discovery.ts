import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { file_belfry_errors_v1_reasons } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { file_google_rpc_error_details } from "#gen/google/rpc/error_details_pb.ts";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "#gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { healthOf } from "./health.ts";
import type { Pipeline } from "./pipeline.ts";
import { reflection } from "./reflection.ts";

/** What tools and probes ask of a server before they have a key. */
export interface Discovery {
  readonly services: { service: DescService; implementation: ServiceImpl<DescService> }[];
  /** Those that watch the health learn that nothing is served, and their streams end. */
  stop(): void;
}

interface Options {
  /** The services of the API. */
  services: readonly DescService[];
  /** Whether they serve: not while the database is away. */
  serving(): boolean;
  implement: Pipeline["implementUnauthenticated"];
}

/** gRPC's health and reflection over the services of the API, and over themselves. */
export function discovery({ services, serving, implement }: Options): Discovery {
  const own = [Health, ServerReflection, ServerReflectionAlpha];
  const health = healthOf(
    services.map(({ typeName }) => typeName),
    serving,
  );
  // Errors carry messages that no RPC names.
  const answers = reflection([...services, ...own], [file_google_rpc_error_details, file_belfry_errors_v1_reasons]);
  const serverReflectionInfo = answers as ServiceImpl<typeof ServerReflection>["serverReflectionInfo"];
  const alpha = answers as unknown as ServiceImpl<typeof ServerReflectionAlpha>["serverReflectionInfo"];
  return {
    services: [
      { service: Health, implementation: implement(Health, health.service) },
      { service: ServerReflection, implementation: implement(ServerReflection, { serverReflectionInfo }) },
      {
        service: ServerReflectionAlpha,
        implementation: implement(ServerReflectionAlpha, { serverReflectionInfo: alpha }),
      },
    ],
    stop: health.stop,
  };
}
