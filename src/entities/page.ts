import type { Fragment } from "postgres";
import type { Db } from "../db/connect.ts";
import { type Outlined, outlineColumns, type PageContents, withContents } from "../db/paging/page-contents.ts";
import type { EntityRow } from "./messages.ts";

const contents: PageContents<"dimensions" | "metadata" | "custom_properties"> = {
  table: "entities",
  id: "bytea",
  columns: { dimensions: "dimensions", metadata: "metadata", custom_properties: "custom_properties" },
};

const gone = { dimensions: {}, metadata: {}, custom_properties: {} };

/** A row of a page, without its contents where they are large. */
export type PageEntityRow = Outlined<EntityRow>;

/** The columns of a `PageEntityRow`. */
export function pageColumns(db: Db): Fragment {
  return db`id, name, ${outlineColumns(db, contents)}, model_production_state, window_production_state, priority,
    model_ms, created_ms, updated_ms, liveness_ms`;
}

/** The entities of a page, as many as fit into an answer: see `withContents`. */
export function wholeEntities<R extends PageEntityRow>(
  db: Db,
  tenantId: string,
  rows: readonly R[],
  limit: number,
  signal: AbortSignal,
): Promise<{ rows: R[]; count: number }> {
  return withContents<keyof typeof gone, R>(db, tenantId, contents, rows, { limit, gone, signal });
}
