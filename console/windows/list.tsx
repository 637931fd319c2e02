import { create } from "@bufbuild/protobuf";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { MaintenanceRuns } from "#gen/belfry/maintenance/v1/maintenance_run_pb.ts";
import type { MaintenanceWindow } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { address, linkTo } from "../data/address.ts";
import { clientOf } from "../data/calls.ts";
import { useList } from "../data/list.ts";
import { may } from "../data/session.ts";
import type { Column } from "../ui/column.ts";
import { ListScreen } from "../ui/list-screen.tsx";
import { nameColumn } from "../ui/name-column.tsx";
import { narrow } from "../ui/narrow.ts";
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
async function readPage({ text, start, end }: Asked, cursor: string, options: { signal?: AbortSignal }) {
  const pageInput = { limit: pageSize, cursor };
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
  const rows = maintWindows.map((window): Row => ({ window, runs: runs.get(window.id) }));
  return { rows, next: pageInfo?.hasNext ? pageInfo.endCursor : "", total: Number(pageInfo?.totalCount ?? 0n) };
}

const columns: readonly Column<Row>[] = [
  { key: "state", label: "State", width: "100px", line: 1, cell: ({ window }) => <WindowState window={window} /> },
  nameColumn("Name", "minmax(140px, 1fr)", ({ window }) => window.name),
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
    width: "208px",
    sort: ({ runs }) => runs?.runs[0]?.start,
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
    width: "64px",
    line: 1,
    end: true,
    cell: ({ runs }) => {
      const held = runs?.heldCount ?? 0n;
      const count = held.toLocaleString("en");
      // A number alone says nothing where no head names it.
      const text = narrow.value ? held > 0n && `holds ${count}` : count;
      return <span title="Entities that it holds now">{text}</span>;
    },
  },
];

/** All windows, along the weeks to come and as a list. */
export function WindowList() {
  const list = useList(() => {
    const start = Date.now();
    return { text: address.value.parameters.get("text") ?? "", start, end: start + weeksHere() * weekMs };
  }, readPage);
  const { asked, rows } = list;
  return (
    <ListScreen
      title="Maintenance"
      list={list}
      counted={["window", "windows"]}
      filter="Part of the name"
      tools={<WeeksChoice />}
      make={may(MaintenanceWindowService.method.createMaintenanceWindow) && ["New window", linkTo(["windows", "new"])]}
      follows
      none="There are no maintenance windows."
      noMatch="No window has this in its name."
      about={
        <p>
          A window gives its entities another production state for a while, once or again and again, and rules can keep
          silent about them meanwhile. A person makes one here, or a program by the API.
        </p>
      }
      above={
        asked &&
        rows.length > 0 && (
          <Timeline
            label="The weeks to come"
            start={asked.start}
            end={asked.end}
            named
            rows={rows.map(({ window: { id, name }, runs }) => ({
              id,
              name,
              runs: runs?.runs ?? [],
              more: runs?.more ?? false,
            }))}
          />
        )
      }
      label="Maintenance windows"
      columns={columns}
      rowKey={({ window }) => window.id}
      hrefOf={({ window }) => linkTo(["windows", window.id])}
    />
  );
}
