import { create } from "@bufbuild/protobuf";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { MaintenanceRuns } from "#gen/belfry/maintenance/v1/maintenance_run_pb.ts";
import type { MaintenanceWindow } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import type { PageInfo } from "#gen/belfry/paging/v1/paging_pb.ts";
import { address, goTo, linkTo, setParameters } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { useLaterPages } from "../data/later-pages.ts";
import { may } from "../data/session.ts";
import { narrow } from "../ui/narrow.ts";
import { Empty, Problem } from "../ui/problem.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { TroubleMark } from "../ui/trouble.tsx";
import { recurrenceWords } from "./recurrence-words.ts";
import { Timeline, WeeksChoice, weeksHere } from "./timeline.tsx";
import { WindowState } from "./words.tsx";

const windows = clientOf(MaintenanceWindowService);

const weekMs = 604_800_000;
const pageSize = 100;

interface Row {
  readonly window: MaintenanceWindow;
  readonly runs: MaintenanceRuns | undefined;
}

interface Asked {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** The windows of one page, each with its runs. */
async function readPage({ text, start, end }: Asked, cursor: string, signal?: AbortSignal) {
  const pageInput = { limit: pageSize, cursor };
  const options = signal ? { signal } : {};
  const named = create(ClauseSchema, {
    filter: { field: "name", operation: Operation.OP_CONTAINS, value: { kind: { case: "stringValue", value: text } } },
  });
  const { maintWindows, pageInfo } =
    text === ""
      ? await windows.listMaintenanceWindows({ pageInput }, options)
      : await windows.searchMaintenanceWindows({ searchInput: { query: { clause: named }, pageInput } }, options);
  const ids = maintWindows.map(({ id }) => id);
  const timeRange = { start: BigInt(start), end: BigInt(end) };
  const known = ids.length === 0 ? [] : (await windows.listMaintenanceRuns({ ids, timeRange }, options)).windows;
  const runs = new Map(known.map((each) => [each.id, each]));
  return { pageInfo, rows: maintWindows.map((window): Row => ({ window, runs: runs.get(window.id) })) };
}

const nextOf = (info: PageInfo | undefined) => (info?.hasNext ? info.endCursor : "");

const columns: readonly Column<Row>[] = [
  { key: "state", label: "State", width: "100px", line: 1, cell: ({ window }) => <WindowState window={window} /> },
  {
    key: "name",
    label: "Name",
    width: "minmax(140px, 1fr)",
    line: 1,
    cell: ({ window }) => <strong>{window.name}</strong>,
    title: ({ window }) => window.name,
  },
  {
    key: "recurrence",
    label: "Runs",
    width: "minmax(220px, 2fr)",
    cell: ({ window }) => (window.trouble === "" ? recurrenceWords(window) : <TroubleMark text={window.trouble} />),
    title: ({ window }) => window.trouble || recurrenceWords(window),
  },
  {
    key: "start",
    label: "Start",
    width: "180px",
    cell: ({ runs }) => <Time at={runs?.runs[0]?.start} short={narrow.value} />,
  },
  {
    key: "end",
    label: "End",
    width: "180px",
    // A narrow row has no room for it; the page of the window has it.
    cell: ({ runs }) => (narrow.value ? null : <Time at={runs?.runs[0]?.end} />),
  },
  {
    key: "held",
    label: "Holds",
    width: "80px",
    line: 1,
    end: true,
    cell: ({ runs }) => <span title="Entities that it holds now">{(runs?.heldCount ?? 0n).toLocaleString("en")}</span>,
  },
];

/** All windows, along the weeks to come and as a list. */
export function WindowList() {
  const answer = useAnswer(async (signal) => {
    const start = Date.now();
    const asked = { text: address.value.parameters.get("text") ?? "", start, end: start + weeksHere() * weekMs };
    return { asked, page: await readPage(asked, "", signal) };
  });
  const { value, loading, failure, again } = answer.value;
  const later = useLaterPages(value, nextOf(value?.page.pageInfo), async ({ asked }, cursor) => {
    const { rows, pageInfo } = await readPage(asked, cursor);
    return { rows, next: nextOf(pageInfo) };
  });
  const rows = [...(value?.page.rows ?? []), ...later.rows];
  const total = Number(value?.page.pageInfo?.totalCount ?? 0n);
  const text = address.value.parameters.get("text") ?? "";
  return (
    <div class="screen">
      <div class="screen-head">
        <h1>Windows</h1>
        <p class="count" role="status">
          {loading ? "Loading…" : value && `${total.toLocaleString("en")} ${total === 1 ? "window" : "windows"}`}
        </p>
        <div class="tools">
          <input
            type="search"
            aria-label="Part of the name"
            placeholder="Part of the name"
            value={text}
            onInput={({ currentTarget }) => setParameters({ text: currentTarget.value }, false)}
          />
          <WeeksChoice />
          {may(MaintenanceWindowService.method.createMaintenanceWindow) && (
            <a class="button" href={linkTo(["windows", "new"])}>
              New window
            </a>
          )}
        </div>
      </div>
      <Problem failure={failure} again={again} />
      <Problem failure={later.failure} again={later.again} />
      {rows.length === 0 && value ? (
        <Empty title={text === "" ? "There are no maintenance windows." : "No window has this in its name."}>
          <p>
            A window gives its entities another production state for a while, once or again and again, and rules can
            keep silent about them meanwhile. A person makes one here, or a program by the API.
          </p>
        </Empty>
      ) : (
        value && (
          <>
            <Timeline
              label="The weeks to come"
              start={value.asked.start}
              end={value.asked.end}
              named
              rows={rows.map(({ window: { id, name }, runs }) => ({
                id,
                name,
                runs: runs?.runs ?? [],
                more: runs?.more ?? false,
              }))}
            />
            <Table
              label="Maintenance windows"
              rows={rows}
              columns={columns}
              rowKey={({ window }) => window.id}
              open={({ window }) => goTo(linkTo(["windows", window.id]))}
              total={total}
              more={() => void later.more()}
            />
          </>
        )
      )}
    </div>
  );
}
