import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { and, eq } from "drizzle-orm";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import {
  CreateEventViewResponseSchema,
  DeleteEventViewResponseSchema,
  type EventView,
  EventViewSchema,
  type EventViewService,
  ListEventViewsResponseSchema,
  ReplaceEventViewResponseSchema,
} from "#gen/belfry/events/v1/view_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { transaction } from "../db/transaction.ts";
import { alreadyExists, failedPrecondition, notFound } from "../errors.ts";
import { principalOf } from "../rpc/context.ts";
import { normalizedName } from "../rpc/name-rules.ts";
import { audited } from "../tenants/audit.ts";
import { eventViews } from "./tables.ts";

const viewsMax = 200;

type ViewRow = typeof eventViews.$inferSelect;

const toView = ({ name, query, display, createdBy, createdMs, updatedMs }: ViewRow): EventView =>
  create(EventViewSchema, { name, query, display, createdBy, createTime: createdMs, updateTime: updatedMs });

const named = (tenantId: string, name: string) => and(eq(eventViews.tenantId, tenantId), eq(eventViews.name, name));

/** Views that the people of a tenant share. */
export function eventViewService(db: Db, nowMs: () => number): Partial<ServiceImpl<typeof EventViewService>> {
  /** Runs a write with its audit row. */
  const written = <T>(context: HandlerContext, name: string, write: (tx: Db) => Promise<T>) =>
    transaction(db, async (tx) => {
      const answer = await write(tx);
      await audited(tx, context, name);
      return answer;
    });

  return {
    async createEventView({ view = create(EventViewSchema) }, context) {
      const { tenantId, clientName } = principalOf(context);
      const { name, query, display } = view;
      const at = BigInt(nowMs());
      const row = await written(context, name, async (tx) => {
        const [made] = await orm(tx)
          .insert(eventViews)
          .values({ tenantId, name, query, display, createdBy: clientName, createdMs: at, updatedMs: at })
          .onConflictDoNothing({ target: [eventViews.tenantId, eventViews.name] })
          .returning();
        if (made === undefined) throw alreadyExists("view", name);
        if ((await orm(tx).$count(eventViews, eq(eventViews.tenantId, tenantId))) > viewsMax) throw tooManyViews();
        return made;
      });
      return create(CreateEventViewResponseSchema, { view: toView(row) });
    },

    async listEventViews(_request, context) {
      const rows = await orm(db)
        .select()
        .from(eventViews)
        .where(eq(eventViews.tenantId, principalOf(context).tenantId))
        .orderBy(eventViews.name);
      return create(ListEventViewsResponseSchema, { views: rows.map(toView) });
    },

    async replaceEventView({ view = create(EventViewSchema) }, context) {
      const { tenantId } = principalOf(context);
      const { query, display } = view;
      const name = normalizedName(view.name);
      const row = await written(context, name, async (tx) => {
        const [changed] = await orm(tx)
          .update(eventViews)
          .set({ query, display, updatedMs: BigInt(nowMs()) })
          .where(named(tenantId, name))
          .returning();
        if (changed === undefined) throw notFound("view", name);
        return changed;
      });
      return create(ReplaceEventViewResponseSchema, { view: toView(row) });
    },

    async deleteEventView({ name: sent }, context) {
      const { tenantId } = principalOf(context);
      const name = normalizedName(sent);
      await written(context, name, async (tx) => {
        const gone = await orm(tx).delete(eventViews).where(named(tenantId, name)).returning({ name: eventViews.name });
        if (gone.length === 0) throw notFound("view", name);
      });
      return create(DeleteEventViewResponseSchema);
    },
  };
}

const tooManyViews = () =>
  failedPrecondition(`the tenant has ${viewsMax} views already; delete one first`, ErrorReason.QUOTA_REACHED);
