import { randomUUIDv7 } from "node:crypto";
import type { HandlerContext } from "@connectrpc/connect";
import type { Principal } from "../auth/principal.ts";
import { bigintArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { resourceText, resourceType } from "../rpc/audit.ts";
import { callRecord, principalOf } from "../rpc/context.ts";
import { codeName } from "../rpc/log.ts";

/** The author of something that is not a call: the command line, the server itself. */
export interface Actor {
  id: string;
  name: string;
}

/** One row of the audit log, but for its tenant and its time. */
interface AuditRow {
  actor: Actor;
  rpc: string;
  resource: string;
  code: number;
  requestId: string;
  /** What the call came with; absent for what was no call. */
  keyPrefix?: string | undefined;
  sessionId?: string | undefined;
}

/** The same with an identifier and a time of its own, ms. */
export interface TimedAuditRow extends AuditRow {
  id: string;
  timeMs: number;
}

const methodOf = (rpc: string) => rpc.slice(rpc.lastIndexOf("/") + 1);

/**
 * Writes the audit row of a write that succeeds, in the write's own transaction: call it in every handler of a
 * writing RPC. `name` is the name or id of what was written, several joined by commas; the type comes from the RPC's name.
 */
export async function audited(tx: Db, context: HandlerContext, name: string): Promise<void> {
  const { tenantId, clientId, clientName, keyPrefix, sessionId } = principalOf(context);
  const record = callRecord(context);
  const rpc = `${context.method.parent.typeName}/${context.method.name}`;
  const actor = { id: clientId, name: clientName };
  const resource = resourceText(resourceType(context.method), name);
  await insertNow(tx, tenantId, { actor, rpc, resource, code: 0, requestId: record.requestId, keyPrefix, sessionId });
  record.auditPending = undefined;
}

/** Writes the audit row of an action that is no call, in its transaction. `action` replaces the RPC. */
export async function auditedAction(
  tx: Db,
  tenantId: string,
  actor: Actor,
  action: string,
  resource: string,
): Promise<void> {
  await insertNow(tx, tenantId, { actor, rpc: `${actor.id}/${action}`, resource, code: 0, requestId: "" });
}

/** Writes the audit row of a call over another tool's protocol that succeeds, in its write's own transaction. */
export async function auditedCall(
  tx: Db,
  { principal, requestId }: { principal: Principal; requestId: string },
  rpc: string,
  resource: string,
): Promise<void> {
  const { tenantId, clientId, clientName, keyPrefix, sessionId } = principal;
  const actor = { id: clientId, name: clientName };
  await insertNow(tx, tenantId, { actor, rpc, resource, code: 0, requestId, keyPrefix, sessionId });
}

async function insertNow(tx: Db, tenantId: string, row: AuditRow) {
  const { actor, rpc, resource, code, requestId, keyPrefix = null, sessionId = null } = row;
  if ("begin" in tx) throw new Error(`${rpc}: an audit row belongs into the transaction of its write`);
  await tx`
    insert into audit_entries
      (tenant_id, id, time_ms, client_id, client_name, rpc, method, resource, outcome, request_id, key_prefix,
        session_id)
    values (${tenantId}, ${randomUUIDv7()}, (extract(epoch from clock_timestamp()) * 1000)::bigint, ${actor.id},
      ${actor.name}, ${rpc}, ${methodOf(rpc)}, ${resource}, ${codeName(code)}, ${requestId},
      ${keyPrefix}, ${sessionId})`;
}

/** Writes rows of one tenant. May be repeated. */
export async function insertAuditRows(db: Db, tenantId: string, rows: readonly TimedAuditRow[]): Promise<void> {
  await db`
    insert into audit_entries
      (tenant_id, id, time_ms, client_id, client_name, rpc, method, resource, outcome, request_id, key_prefix,
        session_id)
    select home.tenant_id, entry.*
    from ${home(db, tenantId)}, unnest(
      ${textArray(rows.map(({ id }) => id))}::text[],
      ${bigintArray(rows.map(({ timeMs }) => BigInt(timeMs)))}::bigint[],
      ${textArray(rows.map(({ actor }) => actor.id))}::text[],
      ${textArray(rows.map(({ actor }) => actor.name))}::text[],
      ${textArray(rows.map(({ rpc }) => rpc))}::text[],
      ${textArray(rows.map(({ rpc }) => methodOf(rpc)))}::text[],
      ${textArray(rows.map(({ resource }) => resource))}::text[],
      ${textArray(rows.map(({ code }) => codeName(code)))}::text[],
      ${textArray(rows.map(({ requestId }) => requestId))}::text[],
      ${textArray(rows.map(({ keyPrefix }) => keyPrefix ?? null))}::text[],
      ${textArray(rows.map(({ sessionId }) => sessionId ?? null))}::text[]
    ) as entry
    on conflict (tenant_id, id) do nothing`;
}
