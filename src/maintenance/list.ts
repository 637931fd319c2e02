import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { getTableColumns } from "drizzle-orm";
import type { Fragment } from "postgres";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import {
  type MaintenanceWindow,
  RunMode,
  RunState,
  WindowStatus,
} from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import {
  type ListMaintenanceWindowsRequest,
  ListMaintenanceWindowsRequestSchema,
  type SearchMaintenanceWindowsRequest,
  WindowSearchSchema,
} from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import type { PageInfo, PageInput } from "#gen/belfry/paging/v1/paging_pb.ts";
import { toSql } from "../clause/to-sql.ts";
import type { Db } from "../db/connect.ts";
import { beyond, keyTexts, orderBy, type SortKey } from "../db/paging/keyset.ts";
import { type Outlined, outlineColumns, type PageContents, withContents } from "../db/paging/page-contents.ts";
import { type PageRequest, pageRequest } from "../db/paging/page-request.ts";
import { invalidField } from "../errors.ts";
import { coversNothing } from "./entities.ts";
import { windowResolver } from "./fields.ts";
import { clauseOf, toWindow, type WindowRow } from "./messages.ts";
import { maintenanceWindows } from "./tables.ts";

/** A page of windows. */
export interface WindowPage {
  maintWindows: MaintenanceWindow[];
  pageInfo: PageInfo;
}

interface Tenant {
  id: string;
  name: string;
}

const searchPath = "search_input";

/** Windows by name, page by page. @throws code 3 for a bad cursor */
export function listWindows(db: Db, tenant: Tenant, { pageInput }: ListMaintenanceWindowsRequest): Promise<WindowPage> {
  const schema = ListMaintenanceWindowsRequestSchema;
  return readPage(db, tenant, pageOf(tenant, pageInput, "page_input", schema, create(schema)), db`true`);
}

/** Windows that a clause over their members matches, by name, page by page. @throws code 3 */
export function searchWindows(
  db: Db,
  tenant: Tenant,
  { searchInput = create(WindowSearchSchema) }: SearchMaintenanceWindowsRequest,
): Promise<WindowPage> {
  const clause = searchInput.query?.clause;
  const path = `${searchPath}.query.clause`;
  if (clause === undefined) throw invalidField(path, "is required", FieldRule.REQUIRED);
  const query = { ...searchInput, pageInput: undefined };
  const page = pageOf(tenant, searchInput.pageInput, `${searchPath}.page_input`, WindowSearchSchema, query);
  return readPage(db, tenant, page, toSql(db, clause, path, windowResolver(tenant.name)));
}

const lookMs = 250;

/** Notes which windows that have a run to come, or one that goes on, cover nothing: of as many as are looked at within `lookMs`. */
async function noteTroubles(db: Db, tenant: Tenant, windows: readonly MaintenanceWindow[]): Promise<void> {
  const until = AbortSignal.timeout(lookMs);
  for (const window of windows) {
    const runs = window.runState === RunState.IN_PROGRESS || window.nextStart !== undefined;
    if (!runs && (window.runMode !== RunMode.MANUAL || window.status === WindowStatus.DISABLED)) continue;
    if (until.aborted) return;
    const found = await coversNothing(db, tenant, { ...window, clause: clauseOf(window) }, until).catch(() => false);
    if (found) window.trouble = "no entity is as its query says now: a run would change nothing";
  }
}

function pageOf<S extends DescMessage>(
  tenant: Tenant,
  input: PageInput | undefined,
  path: string,
  schema: S,
  query: MessageShape<S>,
): PageRequest {
  return pageRequest("maintenance windows", tenant.id, input, path, schema, query);
}

/** The others of a window are at most 8 KiB together. Schedules are small, but for those from before their texts had a bound. */
const contents: PageContents<"clause" | "notification" | "schedule" | "tags"> = {
  table: "maintenance_windows",
  id: "text",
  columns: { clause: "clause", notification: "notification", schedule: "schedule", tags: "tags" },
};
const gone = { clause: {}, notification: null, schedule: {}, tags: [] };

async function readPage(db: Db, tenant: Tenant, page: PageRequest, matching: Fragment): Promise<WindowPage> {
  const keys: SortKey[] = [{ expression: db`name`, type: "text", descending: false, required: true }];
  const columns = Object.entries(getTableColumns(maintenanceWindows))
    .filter(([key]) => !Object.hasOwn(contents.columns, key))
    .map(([key, { name }]) => db`${db(name)} as ${db(key)},`);
  const place = page.after === undefined ? db`true` : beyond(db, keys, page.after, page.backward);
  // By maintenance_windows_name; a tenant has hundreds of windows, so that a clause is asked of each.
  async function count(): Promise<bigint> {
    const [row] = await db<{ total: bigint }[]>`
      select count(*) as total from maintenance_windows where tenant_id = ${tenant.id} and ${matching}`;
    return row?.total ?? 0n;
  }
  const [rows, total] = await Promise.all([
    db<Outlined<WindowRow & { key_texts: (string | null)[] }>[]>`
      select ${columns} ${outlineColumns(db, contents)}, ${keyTexts(db, keys)} as key_texts from maintenance_windows
      where tenant_id = ${tenant.id} and ${matching} and ${place}
      order by ${orderBy(db, keys, page.backward)} limit ${page.limit + 1}`,
    page.counted ?? count(),
  ]);
  const whole = await withContents(db, tenant.id, contents, rows, { limit: page.limit, gone });
  const ordered = page.backward ? whole.rows.toReversed() : whole.rows;
  const { items, info } = await page.cut(ordered, (row) => row.key_texts, total, whole.count);
  const windows = items.map((row) => toWindow(row, tenant.name));
  await noteTroubles(db, tenant, windows);
  return { maintWindows: windows, pageInfo: info };
}
