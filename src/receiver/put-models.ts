import { create } from "@bufbuild/protobuf";
import { FailedModelSchema, type Model, ModelSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import {
  type PutModelRequest,
  type PutModelResponse,
  PutModelResponseSchema,
  type PutModelsRequest,
  type PutModelsResponse,
  PutModelsResponseSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { ModelItem } from "../entities/put.ts";
import type { HeldBody } from "../rpc/bodies.ts";
import type { Broken } from "../rpc/rules.ts";
import { type Failed, sift } from "./item.ts";
import { type Outcome, type Put, putList, putStream } from "./put-all.ts";
import type { Receiver } from "./receiver.ts";

function toItem(model: Model): ModelItem {
  return {
    timestampMs: model.timestamp as bigint,
    dimensions: model.dimensions,
    metadata: model.metadataFields ?? {},
  };
}

const toFailed = ({ error, item }: Failed<Model>) => create(FailedModelSchema, { error, model: item });

const NAME_CHARACTERS_MAX = 255;

function brokenName(model: Model, modelPath: string): Broken[] {
  const name = model.metadataFields?.name;
  const path = `${modelPath}.metadataFields.name`;
  if (name === undefined || name === null || name === "") return [];
  if (typeof name !== "string") return [{ path, rule: "must be a string" }];
  if (name.length > NAME_CHARACTERS_MAX && [...name].length > NAME_CHARACTERS_MAX) {
    return [{ path, rule: `must be at most ${NAME_CHARACTERS_MAX} characters` }];
  }
  return /\p{Cc}/u.test(name) ? [{ path, rule: "must not contain control characters" }] : [];
}

/** The production state is any whole number, the priority one from 0 to 5. */
function brokenNumbers(model: Model, modelPath: string): Broken[] {
  const { productionState = null, priority = null } = model.metadataFields ?? {};
  const broken: Broken[] = [];
  if (productionState !== null && !Number.isSafeInteger(productionState)) {
    broken.push({ path: `${modelPath}.metadataFields.productionState`, rule: "must be a whole number" });
  }
  if (priority !== null && !(Number.isSafeInteger(priority) && Number(priority) >= 0 && Number(priority) <= 5)) {
    broken.push({ path: `${modelPath}.metadataFields.priority`, rule: "must be a whole number from 0 to 5" });
  }
  return broken;
}

const brokenMetadata = (model: Model, path: string) => [...brokenName(model, path), ...brokenNumbers(model, path)];

function putFor(receiver: Receiver, tenantId: string): Put<Model> {
  const rules = { schema: ModelSchema, bounds: receiver.dataBounds, more: brokenMetadata };
  return async (models, pathOf) => {
    const { good, failed } = sift(rules, models, pathOf, receiver.nowMs());
    await receiver.putModels(tenantId, good.map(toItem));
    return { succeeded: good.length, failed };
  };
}

function answer({ succeeded, failedCount, failed }: Outcome<Model>) {
  return {
    succeeded,
    failed: failedCount,
    message: `${succeeded} of ${succeeded + failedCount} models processed`,
    failedModels: failed.map(toFailed),
  };
}

/** Creates, describes and deletes entities; may be repeated. What it counts as succeeded is committed. */
export async function putModels(
  receiver: Receiver,
  tenantId: string,
  { models, detailedResponse }: PutModelsRequest,
): Promise<PutModelsResponse> {
  const outcome = await putList(models, putFor(receiver, tenantId), "models", detailedResponse);
  return create(PutModelsResponseSchema, answer(outcome));
}

/** The same for a stream of models, batch by batch as they come. */
export async function putModel(
  receiver: Receiver,
  tenantId: string,
  requests: AsyncIterable<PutModelRequest>,
  body: HeldBody,
): Promise<PutModelResponse> {
  const modelOf = ({ model }: PutModelRequest) => model.value ?? create(ModelSchema);
  return create(PutModelResponseSchema, answer(await putStream(requests, modelOf, putFor(receiver, tenantId), body)));
}
