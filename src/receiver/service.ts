import type { ServiceImpl } from "@connectrpc/connect";
import type { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { principalOf } from "../rpc/context.ts";
import { putEvent, putEvents } from "./put-events.ts";
import { putModel, putModels } from "./put-models.ts";
import type { Receiver } from "./receiver.ts";

export function dataReceiverService(receiver: Receiver): Partial<ServiceImpl<typeof DataReceiverService>> {
  return {
    putModels: (request, context) => putModels(receiver, principalOf(context).tenantId, request),
    putModel: (requests, context) => putModel(receiver, principalOf(context).tenantId, requests),
    putEvents: (request, context) => putEvents(receiver, principalOf(context).tenantId, request),
    putEvent: (requests, context) => putEvent(receiver, principalOf(context).tenantId, requests),
  };
}
