import { hash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { LRUCache } from "lru-cache";
import { type Model, ModelSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import type { ModelItem } from "../../entities/put.ts";
import { type PutKind, putList } from "../../receiver/put.ts";
import type { OperationCall } from "../integration.ts";
import type { Walk } from "./fields.ts";
import { entityOf, type ResourcePart, resourceDigest } from "./resource-parts.ts";

/** Describes entities by what their resources say. */
export interface ResourceModels {
  /** Sends the models of entities whose metadata have changed, some at a time. @throws what the receiver throws */
  put(resources: Iterable<ResourcePart>, call: OperationCall, walk: Walk): Promise<void>;
}

/** Characters, of which an entry takes 400 beside its key. */
const bounds = { maxSize: 16 * 1024 * 1024, sizeCalculation: (_: unknown, key: string) => key.length + 400 };
const digestOf = (text: string) => hash("sha256", text, "base64");
/** Processes that are one entity may differ in an attribute: each change is sent, but not with each request. */
const changedMs = 60_000;
/** What has not changed is sent again, in case that the entity was deleted meanwhile. */
const repeatedMs = 3_600_000;
/** So many models are made at a time, or of resources that take so many bytes. */
const [modelsAtOnce, bytesAtOnce] = [1000, 256 * 1024];

/** Remembers the digests of what was sent, taken or not; forgets what is used least lately. */
export function resourceModels(models: PutKind<typeof ModelSchema, ModelItem>): ResourceModels {
  const digests = new LRUCache<string, { entity: string; metadata: string }>(bounds);
  const sent = new LRUCache<string, { metadata: string; atMs: number }>(bounds);

  /** Digests of the entity of a resource, and of all its other attributes, which is empty where there are none. */
  function digestsOf(tenantId: string, resource: ResourcePart, walk: Walk) {
    const key = `${tenantId} ${resourceDigest(resource).toString("latin1")}`;
    const known = digests.get(key);
    if (known !== undefined) return known;
    const { dimensions, metadata } = entityOf(resource, walk);
    const others = JSON.stringify(metadata());
    const made = {
      entity: digestOf(tenantId + JSON.stringify(dimensions)),
      metadata: others === "{}" ? "" : digestOf(others),
    };
    digests.set(key, made);
    return made;
  }

  /** The resources whose models are due, the last one of each entity. */
  async function due(resources: Iterable<ResourcePart>, call: OperationCall, walk: Walk, nowMs: number) {
    const found = new Map<string, { resource: ResourcePart; metadata: string }>();
    for (const resource of resources) {
      const wait = call.pace();
      if (wait !== undefined) await wait;
      const { entity, metadata } = digestsOf(call.tenantId, resource, walk);
      if (metadata === "") continue;
      const before = sent.get(entity);
      const waitMs = before?.metadata === metadata ? repeatedMs : changedMs;
      if (before === undefined || nowMs - before.atMs >= waitMs) found.set(entity, { resource, metadata });
    }
    return found;
  }

  return {
    async put(resources, call, walk) {
      const nowMs = Math.floor(call.nowMs());
      let list: Model[] = [];
      let bytes = 0;
      const all = await due(resources, call, walk, nowMs);
      const store = async () => {
        const { failedCount, firstError } = await putList(models, call.sender, list, { bytes, detailed: false });
        if (failedCount > 0)
          call.log.warn({ tenant: call.tenantId, failedCount, firstError }, "attributes of resources were not stored");
        [list, bytes] = [[], 0];
      };
      for (const { resource } of all.values()) {
        const wait = call.pace();
        if (wait !== undefined) await wait;
        const { dimensions, metadata } = entityOf(resource, walk);
        list.push(create(ModelSchema, { timestamp: BigInt(nowMs), dimensions, metadataFields: metadata() }));
        bytes += resource.bytes.length;
        if (list.length >= modelsAtOnce || bytes >= bytesAtOnce) await store();
      }
      if (list.length > 0) await store();
      for (const [entity, { metadata }] of all) sent.set(entity, { metadata, atMs: nowMs });
    },
  };
}
