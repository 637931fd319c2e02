import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  EventSchema,
  FailedCompactMetricSchema,
  FailedEventSchema,
  FailedMetricSchema,
  FailedModelSchema,
  FailedTaggedMetricSchema,
  ModelSchema,
} from "#gen/belfry/receiver/v1/receiver_pb.ts";
import {
  type DataReceiverService,
  PutEventResponseSchema,
  PutEventsResponseSchema,
  type PutMetricRequest,
  PutMetricResponseSchema,
  PutMetricsResponseSchema,
  PutModelResponseSchema,
  PutModelsResponseSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { ModelItem } from "../entities/put.ts";
import type { EventItem } from "../events/ingest.ts";
import { callRecord, principalOf } from "../rpc/context.ts";
import { heldBody } from "../rpc/request-memory.ts";
import type { IngestQueue } from "./ingest-queue.ts";
import { type PointKinds, pointOf } from "./points.ts";
import { counts, type PutKind, type PutOutcome, putList, putPortions, putStream, type Sender } from "./put.ts";

/** What the receiver's operations work with. */
export interface Receiver {
  lanes: IngestQueue;
  /** The database's time. */
  nowMs(): number;
  models: PutKind<typeof ModelSchema, ModelItem>;
  events: PutKind<typeof EventSchema, EventItem>;
  points: PointKinds;
}

/** The lane of each RPC, for what is asked before its body is read. */
export const laneOf: Readonly<Record<string, string>> = {
  putModels: "models",
  putModel: "models",
  putMetrics: "metrics",
  putMetric: "metrics",
  putEvents: "events",
  putEvent: "events",
};

async function* mapped<Request, T>(requests: AsyncIterable<Request>, of: (request: Request) => T) {
  for await (const request of requests) yield of(request);
}

/** Batches are refused while what waits would take too long; streams are read more slowly instead. */
export function dataReceiverService({
  lanes,
  nowMs,
  models,
  events,
  points,
}: Receiver): Partial<ServiceImpl<typeof DataReceiverService>> {
  function senderOf(context: HandlerContext): Sender {
    const record = callRecord(context);
    return { lanes, nowMs, tenantId: principalOf(context).tenantId, abandoned: () => record.over };
  }
  const sizeOf = (context: HandlerContext, detailed: boolean) => ({ bytes: heldBody(context).bytes(), detailed });
  const modelAnswer = (outcome: PutOutcome<Parameters<typeof models.toItem>[0]>) => ({
    ...counts(outcome, "models"),
    failedModels: outcome.failed.map(({ error, item }) => create(FailedModelSchema, { error, model: item })),
  });
  const eventAnswer = (outcome: PutOutcome<Parameters<typeof events.toItem>[0]>) => ({
    ...counts(outcome, "events"),
    failedEvents: outcome.failed.map(({ error, item }) => create(FailedEventSchema, { error, event: item })),
  });
  return {
    async putModels({ models: list, detailedResponse }, context) {
      const outcome = await putList(models, senderOf(context), list, sizeOf(context, detailedResponse));
      return create(PutModelsResponseSchema, modelAnswer(outcome));
    },
    async putModel(requests, context) {
      const all = mapped(requests, ({ model }) => model.value ?? create(ModelSchema));
      const outcome = await putStream(models, senderOf(context), all, heldBody(context));
      return create(PutModelResponseSchema, modelAnswer(outcome));
    },
    async putMetrics(request, context) {
      const bytes = heldBody(context).bytes();
      return create(PutMetricsResponseSchema, pointAnswer(await points.putAll(senderOf(context), request, bytes)));
    },
    async putMetric(requests, context) {
      const outcome = await putPortions(points.put, "metrics", senderOf(context), requests, heldBody(context));
      return create(PutMetricResponseSchema, pointAnswer(outcome));
    },
    async putEvents({ events: list, detailedResponse }, context) {
      const outcome = await putList(events, senderOf(context), list, sizeOf(context, detailedResponse));
      return create(PutEventsResponseSchema, eventAnswer(outcome));
    },
    async putEvent(requests, context) {
      const all = mapped(requests, ({ event }) => event.value ?? create(EventSchema));
      const outcome = await putStream(events, senderOf(context), all, heldBody(context));
      return create(PutEventResponseSchema, eventAnswer(outcome));
    },
  };
}

/** What both answers to points say; the failed ones in the lists of their forms. */
export function pointAnswer(outcome: PutOutcome<PutMetricRequest>) {
  const points = outcome.failed.map(({ error, item }) => ({ error, ...pointOf(item) }));
  return {
    ...counts(outcome, "metrics"),
    failedCompactMetrics: points.flatMap(({ error, ...point }) =>
      point.case === "compact" ? create(FailedCompactMetricSchema, { error, metric: point.value }) : [],
    ),
    failedTaggedMetrics: points.flatMap(({ error, ...point }) =>
      point.case === "tagged" ? create(FailedTaggedMetricSchema, { error, metric: point.value }) : [],
    ),
    failedMetrics: points.flatMap(({ error, ...point }) =>
      point.case === "canonical" ? create(FailedMetricSchema, { error, metric: point.value }) : [],
    ),
  };
}
