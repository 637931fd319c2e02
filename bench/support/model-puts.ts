import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type PutModelsRequest, PutModelsRequestSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import { bigintArray, byteaArray, jsonArray, textArray } from "../../src/db/batch.ts";
import type { Sql } from "../../src/db/connect.ts";
import { coreFacts } from "../../src/entities/core-properties.ts";
import { entityId } from "../../src/entities/identity.ts";
import { knownEntities } from "../../src/entities/known.ts";
import { modelKind } from "../../src/receiver/kinds.ts";
import { lanes } from "../../src/receiver/lanes.ts";
import { putList } from "../../src/receiver/put.ts";
import { type MadeEntity, madeEntities } from "./entities.ts";

const aRequest = 1000;
const atOnce = 4;
/** Requests that each of the two stores before it is the other's turn. */
const turn = 20;

type Store = (entities: readonly MadeEntity[], timestampMs: bigint) => Promise<unknown>;

/** The receiver's PutModels, from the message on. */
function service(sql: Sql, tenantId: string): Store {
  const kind = modelKind(readConfig({}), Date.now, undefined, knownEntities());
  const all = lanes(sql, { batchesMax: 4, waitMsMax: 60_000 });
  const sender = { lanes: all, tenantId, nowMs: Date.now, abandoned: () => false };
  return async (entities, timestampMs) => {
    const models = entities.map(({ dimensions, metadata }) => ({
      timestamp: timestampMs,
      dimensions,
      metadataFields: metadata as never,
    }));
    const request: PutModelsRequest = create(PutModelsRequestSchema, { models });
    const { succeeded } = await putList(kind, sender, request.models, { bytes: 0, detailed: false });
    if (succeeded !== entities.length) throw new Error(`${succeeded} of ${entities.length} models succeeded`);
  };
}

/** The upsert that comes to mind first, with the columns made beforehand. */
function plain(sql: Sql, tenantId: string): Store {
  return (entities, timestampMs) => sql`
    insert into entities (tenant_id, id, name, dimensions, metadata, core_properties, model_ms, created_ms, updated_ms,
      liveness_ms)
    select ${tenantId}::uuid, id, name, dimensions, metadata, core, ms, ms, ms, ms - ms % 60000
    from unnest(
      ${byteaArray(entities.map(({ dimensions }) => entityId(tenantId, dimensions)))}::bytea[],
      ${textArray(entities.map(({ metadata }) => String(metadata.name)))}::text[],
      ${jsonArray(entities.map(({ dimensions }) => dimensions))}::jsonb[],
      ${jsonArray(entities.map(({ metadata }) => metadata))}::jsonb[],
      ${jsonArray(entities.map(({ dimensions, metadata }) => coreFacts(tenantId, dimensions, metadata)))}::jsonb[],
      ${bigintArray(entities.map(() => timestampMs))}::bigint[]
    ) as made (id, name, dimensions, metadata, core, ms)
    order by id
    on conflict (tenant_id, id) do update set name = excluded.name, metadata = excluded.metadata,
      core_properties = excluded.core_properties, model_ms = excluded.model_ms, updated_ms = excluded.updated_ms,
      liveness_ms = excluded.liveness_ms`;
}

/** Stores all, in turns; answers the models a second of each. */
async function race(stores: readonly Store[], requests: readonly MadeEntity[][], timestampMs: bigint) {
  const ms = stores.map(() => 0);
  for (let from = 0; from < requests.length; from += turn) {
    for (const [i, store] of stores.entries()) {
      const waiting = requests.slice(from, from + turn);
      const begin = performance.now();
      await Promise.all(
        Array.from({ length: atOnce }, async () => {
          for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await store(next, timestampMs);
        }),
      );
      ms[i] = (ms[i] ?? 0) + performance.now() - begin;
    }
  }
  return ms.map((each) => (requests.length * aRequest * 1000) / each);
}

/** First sight and repeats of `count` models, each beside the plain upsert of the same: a line each. */
export async function* putLines(sql: Sql, count: number): AsyncGenerator<string> {
  const all = [...madeEntities(count, 2)];
  const requests = Array.from({ length: count / aRequest }, (_, i) => all.slice(i * aRequest, (i + 1) * aRequest));
  const stores = [service(sql, randomUUID()), plain(sql, randomUUID())];
  const minuteMs = 60_000;
  const start = BigInt(Math.floor(Date.now() / minuteMs) * minuteMs - minuteMs);
  const phases = {
    "first sight": 0,
    "repeats that change nothing": 1,
    "repeats a minute later, that move liveness": minuteMs,
  };
  for (const [name, afterMs] of Object.entries(phases)) {
    const [ours = 0, theirs = 0] = await race(stores, requests, start + BigInt(afterMs));
    const ratio = (ours / theirs).toFixed(2);
    yield `${name}: ${Math.round(ours)} models/s, ${ratio} of the plain upsert's ${Math.round(theirs)}`;
  }
}
