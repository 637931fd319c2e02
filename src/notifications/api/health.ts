import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type DeliveryService,
  GetNotificationHealthResponseSchema,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { BreakerState } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Db } from "../../db/connect.ts";
import { cancelOn } from "../../db/driver/cancel.ts";
import { principalOf } from "../../rpc/context.ts";

const hourMs = 3_600_000;
/** How many destinations are answered. */
const shownMax = 100;
/** How many deliveries are counted, of all destinations to which any waits, in equal shares. */
const countedMax = 10_000;

interface HealthRow {
  name: string;
  disabledReason: string;
  opened: number;
  openUntilMs: number;
  waiting: number;
  /** Null: none waits. */
  sinceMs: number | null;
  failed: number;
}

/** Says how notifying itself is. */
export function notificationHealth(
  db: Db,
  { nowMs }: { nowMs(): number },
): Pick<ServiceImpl<typeof DeliveryService>, "getNotificationHealth"> {
  return {
    async getNotificationHealth(_request, context) {
      const now = nowMs();
      const rows = await readHealth(db, principalOf(context).tenantId, now, context.signal);
      const count = (of: (row: HealthRow) => number) => BigInt(rows.reduce((sum, row) => sum + of(row), 0));
      const since = rows.flatMap(({ sinceMs }) => sinceMs ?? []);
      return create(GetNotificationHealthResponseSchema, {
        destinations: rows
          .filter(isNotable)
          .sort(byNeed)
          .slice(0, shownMax)
          .map((row) => toHealth(row, now)),
        destinationCount: BigInt(rows.length),
        disabledCount: count(({ disabledReason }) => Number(disabledReason !== "")),
        pausedCount: count(({ opened }) => Number(opened > 0)),
        waitingCount: count(({ waiting }) => waiting),
        ...(since.length > 0 && { waitingSince: timestampFromMs(since.reduce((a, b) => Math.min(a, b))) }),
        failedCount: count(({ failed }) => failed),
      });
    },
  };
}

const isNotable = ({ disabledReason, opened, waiting, failed }: HealthRow) =>
  disabledReason !== "" || opened > 0 || waiting > 0 || failed > 0;

function byNeed(a: HealthRow, b: HealthRow): number {
  const rank = ({ disabledReason, opened }: HealthRow) => (disabledReason !== "" ? 0 : opened > 0 ? 1 : 2);
  return rank(a) - rank(b) || b.waiting - a.waiting || b.failed - a.failed;
}

function toHealth({ name, disabledReason, opened, openUntilMs, waiting, sinceMs, failed }: HealthRow, nowMs: number) {
  const { CLOSED, OPEN, HALF_OPEN } = BreakerState;
  const isPaused = opened > 0 && openUntilMs > nowMs;
  return {
    name,
    breakerState: opened === 0 ? CLOSED : isPaused ? OPEN : HALF_OPEN,
    ...(isPaused && { pausedUntil: timestampFromMs(openUntilMs) }),
    disabledReason,
    waitingCount: BigInt(waiting),
    ...(sinceMs !== null && { waitingSince: timestampFromMs(sinceMs) }),
    failedCount: BigInt(failed),
  };
}

/** Reads all destinations, by name, in bounded parts of due_deliveries_by_due, and primary keys. */
async function readHealth(db: Db, tenantId: string, nowMs: number, signal: AbortSignal): Promise<HealthRow[]> {
  const now = BigInt(nowMs);
  // A delivery waits since it is due first; one that was tried since it was decided. What a silence holds is due when that ends.
  const statement = db<HealthRow[]>`
    with share as materialized (
      select greatest(1, ${countedMax} / greatest(1, count(*))) as size from destinations d
      where d.tenant_id = ${tenantId} and (
        select true from due_deliveries w
        where w.tenant_id = ${tenantId} and w.destination_name = d.name and w.tries >= 0 limit 1)
    )
    select d.name, d.disabled_reason as "disabledReason", coalesce(s.opened, 0) as opened,
      coalesce(s.open_until_ms, 0)::float8 as "openUntilMs", w.waiting, w.since_ms as "sinceMs", f.failed
    from destinations d
      left join lateral (
        select opened, open_until_ms from destination_states
        where tenant_id = ${tenantId} and destination_name = d.name limit 1
      ) as s on true
      cross join lateral (
        select count(*)::int4 as waiting, min(case when tries = 0 then due_ms else created_ms end)::float8 as since_ms
        from (
          select due_ms, created_ms, tries, silence_id from due_deliveries
          where tenant_id = ${tenantId} and destination_name = d.name and tries >= 0
          order by due_ms limit (select size from share)
        ) as first
        where due_ms <= ${now} or (tries > 0 and silence_id is null)
      ) as w
      cross join lateral (
        select coalesce(sum(count), 0)::int4 as failed from delivery_counts
        where tenant_id = ${tenantId} and about = 'failed' and name = d.name and slot_ms > ${now - BigInt(hourMs)}
      ) as f
    where d.tenant_id = ${tenantId} order by d.name`;
  return await cancelOn(statement, signal);
}
