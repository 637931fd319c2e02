import type { ServiceImpl } from "@connectrpc/connect";
import type { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { principalOf } from "../rpc/context.ts";
import { searchEntities } from "./search.ts";

export function entityService(db: Db): Partial<ServiceImpl<typeof EntityService>> {
  return {
    searchEntities(request, context) {
      const { tenantId, tenantName } = principalOf(context);
      return searchEntities(db, { id: tenantId, name: tenantName }, request, context.signal);
    },
  };
}
