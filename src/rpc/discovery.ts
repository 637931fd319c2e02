import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, file_belfry_errors_v1_reasons } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { file_google_rpc_error_details } from "#gen/google/rpc/error_details_pb.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "#gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { notFound, unavailable } from "../errors.ts";
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

/** gRPC's health service (github.com/grpc/grpc, doc/health-checking.md). */
export interface HealthOfServices {
  readonly service: ServiceImpl<typeof Health>;
  /** Nothing is served from now on: watches report it, and end. */
  stop(): void;
}

const lookMs = 250;

/** Reports of these services, and of the server as a whole under the empty name, whether they serve. `serving` is asked often. */
export function healthOf(services: readonly string[], serving: () => boolean): HealthOfServices {
  const names = new Set(["", ...services]);
  let stopping = false;
  let wakes = new Set<() => void>();

  const statusOf = (service: string) => {
    if (!names.has(service)) return Status.SERVICE_UNKNOWN;
    return serving() && !stopping ? Status.SERVING : Status.NOT_SERVING;
  };

  function wake() {
    const waiting = wakes;
    wakes = new Set();
    for (const each of waiting) each();
  }

  /** Resolves after a look at the state, of which there is one for all that watch. */
  function looked(): Promise<void> {
    if (wakes.size === 0) setTimeout(wake, lookMs).unref();
    return new Promise((resolve) => wakes.add(resolve));
  }

  return {
    service: {
      check({ service }) {
        const status = statusOf(service);
        if (status === Status.SERVICE_UNKNOWN) throw notFound("service", service);
        return { status };
      },
      list: () => ({ statuses: Object.fromEntries([...names].map((name) => [name, { status: statusOf(name) }])) }),
      async *watch({ service }, { signal }) {
        let told: Status | undefined;
        while (!signal.aborted) {
          const status = statusOf(service);
          if (status !== told) yield { status };
          told = status;
          if (stopping) throw unavailable("the server is stopping; ask again", ErrorReason.SERVER_STOPPING);
          await looked();
        }
      },
    },
    stop() {
      stopping = true;
      wake();
    },
  };
}
