import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AuditEntry,
  AuditEntrySchema,
  type ListAuditEntriesRequest,
  type ListAuditEntriesResponse,
  ListAuditEntriesResponseSchema,
} from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { beyond, keyTexts, type SortKey } from "../db/paging/keyset.ts";
import { countedPage } from "../db/paging/token-page.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { checkEndMs, timestampMs } from "../rpc/times.ts";

interface AuditRow {
  id: string;
  timeMs: bigint;
  clientId: string;
  clientName: string;
  rpc: string;
  resource: string;
  outcome: string;
  requestId: string;
  keyPrefix: string | null;
  sessionId: string | null;
  keyTexts: (string | null)[];
}

/** Entries that all given filters match, the newest first. */
export async function listAuditEntries(
  db: Db,
  tenantId: string,
  request: ListAuditEntriesRequest,
  signal: AbortSignal,
): Promise<ListAuditEntriesResponse> {
  const { client, rpc } = request;
  const startMs = request.startTime && timestampMs(request.startTime, "startTime");
  const endMs = request.endTime && timestampMs(request.endTime, "endTime");
  if (endMs !== undefined) checkEndMs(endMs, "endTime");
  const page = countedPage("audit log", tenantId, request, JSON.stringify([client, rpc, `${startMs}`, `${endMs}`]));
  const conditions = [db`tenant_id = ${tenantId}`];
  if (client !== "") conditions.push(db`client_id = ${client}`);
  if (rpc !== "") conditions.push(db`method = ${rpc.slice(rpc.lastIndexOf("/") + 1)}`);
  if (rpc.includes("/")) conditions.push(db`rpc = ${rpc}`);
  if (startMs !== undefined) conditions.push(db`time_ms >= ${startMs}`);
  if (endMs !== undefined) conditions.push(db`time_ms < ${endMs}`);
  const matching = sqlJoin(db, conditions, "and");
  const keys: SortKey[] = [
    { expression: db`time_ms`, type: "bigint", descending: true },
    { expression: db`id`, type: "text", descending: true },
  ];
  // By audit_entries_client or audit_entries_method when that filter is given, else by audit_entries_time.
  const rowsRead = db<AuditRow[]>`
    select id, time_ms as "timeMs", client_id as "clientId", client_name as "clientName", rpc, resource, outcome,
      request_id as "requestId", key_prefix as "keyPrefix", session_id as "sessionId", ${keyTexts(db, keys)} as "keyTexts"
    from audit_entries
    where ${matching} and ${page.after === undefined ? db`true` : beyond(db, keys, page.after)}
    order by time_ms desc, id desc limit ${page.rowsMax}`;
  async function count() {
    const totalRead = db<{ total: bigint }[]>`select count(*) as total from audit_entries where ${matching}`;
    const [row] = await cancelOn(totalRead, signal);
    return row?.total ?? 0n;
  }
  const [rows, total] = await Promise.all([cancelOn(rowsRead, signal), page.total(count)]);
  const { items, nextPageToken } = page.cut(rows, (row) => row.keyTexts, total);
  return create(ListAuditEntriesResponseSchema, {
    entries: items.map(toAuditEntry),
    nextPageToken,
    totalCount: total,
  });
}

function toAuditEntry(row: AuditRow): AuditEntry {
  const { id, rpc, resource, outcome, requestId } = row;
  return create(AuditEntrySchema, {
    id,
    time: timestampFromMs(Number(row.timeMs)),
    client: { id: row.clientId, name: row.clientName },
    rpc,
    resource,
    outcome,
    requestId,
    keyPrefix: row.keyPrefix ?? "",
    session: row.sessionId ?? "",
  });
}
