import type { ServiceImpl } from "@connectrpc/connect";
import type { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { principalOf } from "../rpc/context.ts";
import { listDefaultFields } from "./list-fields.ts";
import { searchEntities } from "./search.ts";

/** Entities: search, and the fields that they have. */
export function entityService(db: Db): Partial<ServiceImpl<typeof EntityService>> {
  return {
    searchEntities(request, context) {
      const { tenantId, tenantName } = principalOf(context);
      return searchEntities(db, { id: tenantId, name: tenantName }, request, context.signal);
    },
    listDefaultFields: (request, context) => listDefaultFields(db, principalOf(context).tenantId, request),
  };
}
