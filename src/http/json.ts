import type { Logger } from "pino";
import type { Bodies } from "../rpc/bodies.ts";
import { recordOf } from "../rpc/context.ts";
import { logUnexpected } from "../rpc/log.ts";
import { type TranscoderOptions, transcoder } from "../transcoding/handler.ts";
import { answerHeaders, messageBytesMax, type PortOptions } from "./port.ts";

interface Options extends Pick<TranscoderOptions, "routes" | "services" | "admit" | "signal"> {
  config: PortOptions["config"];
  bodies: Bodies;
  log: Logger;
}

/** JSON over /v1, with the bounds of the port, and what it reads and fails with noted in the records of its requests. */
export function jsonApi({ config, bodies, log, ...served }: Options): NonNullable<PortOptions["transcode"]> {
  return transcoder({
    ...served,
    bodyBytesMax: (method) => messageBytesMax(config, method.parent),
    itemsMax: config.receiverItemsMax,
    streamBytesMax: config.streamBytesMax,
    bodyIdleMs: config.streamIdleMs,
    timeoutMsMax: config.deadlineMsMax,
    headersOf: answerHeaders,
    received(request, bytes) {
      const record = recordOf(request);
      if (record !== undefined) bodies.reserve(record, bytes);
    },
    report(error, request) {
      const record = recordOf(request);
      if (record !== undefined) logUnexpected(log, record, error);
    },
    failed(code, request) {
      const record = recordOf(request);
      if (record !== undefined) record.code ??= code;
    },
  });
}
