import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { SessionService } from "#gen/belfry/tenants/v1/session_service_pb.ts";
import type { startCallers } from "../auth/callers.ts";
import type { Config } from "../config/settings.ts";
import type { Db } from "../db/connect.ts";
import type { AuditQueue } from "./audit-queue.ts";
import { apiClientService, auditLogService } from "./service.ts";
import { sessionService } from "./session-service.ts";

/** The services of this package. */
export function tenantServices(
  db: Db,
  config: Config,
  callers: ReturnType<typeof startCallers>,
  audit: AuditQueue,
): readonly [DescService, Partial<ServiceImpl<DescService>>][] {
  return [
    [ApiClientService, apiClientService(db, config)],
    [AuditLogService, auditLogService(db, audit.settled)],
    [SessionService, sessionService(db, { ...callers, bounds: config })],
  ];
}
