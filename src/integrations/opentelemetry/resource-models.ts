import { create } from "@bufbuild/protobuf";
import { type Model, ModelSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import type { ModelItem } from "../../entities/put.ts";
import { type PutKind, putList } from "../../receiver/put.ts";
import type { Call } from "../integration.ts";
import { recentMap } from "../recent-map.ts";
import type { ResourceEntity } from "./resource.ts";

/** Describes entities by what their resources say. */
export interface ResourceModels {
  /**
   * Sends the models of entities whose metadata have changed. What fails is logged and sent with the next request: the data that
   * came with it are stored already, and must not be sent again.
   */
  put(entities: readonly ResourceEntity[], call: Call): Promise<void>;
}

const rememberedCharactersMax = 64 * 1024 * 1024;
/** Processes that are one entity may differ in an attribute: each change is sent, but not with each request. */
const changedMs = 60_000;
/** What has not changed is sent again, in case that the entity was deleted meanwhile. */
const repeatedMs = 3_600_000;

/** Remembers what was sent; forgets what is used least lately. */
export function resourceModels(models: PutKind<typeof ModelSchema, ModelItem>): ResourceModels {
  const sent = recentMap<{ metadata: string; atMs: number }>(rememberedCharactersMax, 2000);

  return {
    async put(entities, call) {
      const nowMs = Math.floor(call.nowMs());
      const due = new Map<string, { model: Model; metadata: string }>();
      for (const { dimensions, metadata: metadataFields } of entities) {
        if (Object.keys(metadataFields).length === 0) continue;
        const key = `${call.tenantId}${JSON.stringify(dimensions)}`;
        const metadata = JSON.stringify(metadataFields);
        const before = sent.get(key);
        const waitMs = before?.metadata === metadata ? repeatedMs : changedMs;
        if (before !== undefined && nowMs - before.atMs < waitMs) continue;
        const model = create(ModelSchema, { timestamp: BigInt(nowMs), dimensions, metadataFields });
        due.set(key, { model, metadata });
      }
      if (due.size === 0) return;
      const list = [...due.values()].map(({ model }) => model);
      const bytes = [...due.values()].reduce((sum, { metadata }) => sum + metadata.length, 0);
      const outcome = await putList(models, call.sender, list, { bytes, detailed: false }).catch(
        (error: Error) => error,
      );
      if (outcome instanceof Error) {
        call.log.warn({ tenant: call.tenantId, err: outcome }, "attributes of resources were not stored");
        return;
      }
      const { failedCount, firstError } = outcome;
      if (failedCount > 0)
        call.log.warn({ tenant: call.tenantId, failedCount, firstError }, "attributes of resources were not stored");
      for (const [key, { metadata }] of due) sent.set(key, { metadata, atMs: nowMs });
    },
  };
}
