import { type TranscoderOptions, transcoder } from "../protocols/json.ts";
import { recordOf } from "../rpc/context.ts";
import type { Discovery } from "../rpc/discovery.ts";
import { logUnexpected } from "../rpc/log.ts";
import { listenError } from "./listen-error.ts";
import { messageBytesMax, openPort, type Port, type PortOptions } from "./port.ts";

interface Options extends Omit<PortOptions, "transcode" | "stopping" | "bodies"> {
  stopping: AbortController;
  bodies: NonNullable<PortOptions["bodies"]>;
  routes: TranscoderOptions["routes"];
  /** What is answered without a key; it has no routes under /v1. */
  discovery: Discovery;
}

/** Opens the port with all that it serves: the services over every protocol. @throws StartError when it cannot listen */
export async function serveApi(options: Options): Promise<Port> {
  const { config, services, discovery, stopping } = options;
  try {
    return await openPort({
      ...options,
      services: [...services, ...discovery.services],
      transcode: jsonApi(options, stopping.signal),
    });
  } catch (error) {
    throw listenError(error as NodeJS.ErrnoException, config);
  }
}

/** JSON over /v1, with the bounds of the port, and what it reads and fails with noted in the records of its requests. */
function jsonApi({ config, routes, services, admit, bodies, log }: Options, signal: AbortSignal) {
  return transcoder({
    routes,
    services,
    admit,
    signal,
    bodyBytesMax: (method) => messageBytesMax(config, method.parent),
    itemsMax: config.receiverItemsMax,
    streamBytesMax: config.streamBytesMax,
    bodyIdleMs: config.streamIdleMs,
    timeoutMsMax: config.deadlineMsMax,
    bodies,
    report(error, request) {
      const record = recordOf(request);
      if (record !== undefined) logUnexpected(log, record, error);
    },
  });
}
