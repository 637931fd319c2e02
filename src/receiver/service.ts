import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { heldBody } from "../rpc/bodies.ts";
import { principalOf } from "../rpc/context.ts";
import { putEvent, putEvents } from "./put-events.ts";
import { putModel, putModels } from "./put-models.ts";
import type { Receiver } from "./receiver.ts";

/** Batches are refused while more comes than is stored; streams are read more slowly instead. */
export function dataReceiverService(receiver: Receiver): Partial<ServiceImpl<typeof DataReceiverService>> {
  const { admission } = receiver;
  const tenantOf = (context: HandlerContext) => principalOf(context).tenantId;
  return {
    putModels: (request, context) =>
      admission.request(request.models.length, () => putModels(receiver, tenantOf(context), request)),
    putModel: (requests, context) => putModel(receiver, tenantOf(context), requests, heldBody(context)),
    putEvents: (request, context) =>
      admission.request(request.events.length, () => putEvents(receiver, tenantOf(context), request)),
    putEvent: (requests, context) => putEvent(receiver, tenantOf(context), requests, heldBody(context)),
  };
}
