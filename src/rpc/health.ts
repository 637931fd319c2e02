import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { type Health, HealthCheckResponse_ServingStatus as Status } from "#gen/grpc/health/v1/health_pb.ts";
import { notFound, unavailable } from "../errors.ts";

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
