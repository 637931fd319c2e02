import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import {
  type Delivery,
  DeliveryService,
  type DeliveryStatus,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { address, hereWith, linkTo, setParameters } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { type List, type Page, useList } from "../data/list.ts";
import { useNews } from "../data/news.ts";
import { oneOrNull } from "../data/one-or-null.ts";
import { type Column, textColumn } from "../ui/column.ts";
import { Dialog } from "../ui/dialog.tsx";
import { ListScreen } from "../ui/list-screen.tsx";
import { nameColumn } from "../ui/name-column.tsx";
import { useNewest, WaitingRows } from "../ui/newest.tsx";
import { ChoiceFilter } from "../ui/text-filters.tsx";
import { nowMs, Time } from "../ui/time.tsx";
import { momentsOf, TimeRangeChoice } from "../ui/time-range.tsx";
import { DeliveryCard, DeliveryState, statusWords } from "./card.tsx";
import { Explanation } from "./explanation.tsx";
import { eventOf, NameFilters } from "./filters.tsx";
import { type Names, subjectText, useNames } from "./subject-names.ts";
import { Troubles } from "./troubles.tsx";

const deliveries = clientOf(DeliveryService);

const parameters = ["rule", "destination", "trigger", "entityId", "eventId", "summary", "groupKey"] as const;

/** The columns, with the names of what deliveries are about. */
const columnsOf = (names: Names): readonly Column<Delivery>[] => [
  { key: "status", label: "State", width: "104px", cell: ({ status }) => <DeliveryState status={status} /> },
  nameColumn("About", "minmax(180px, 3.6fr)", (delivery) => subjectText(delivery, names)),
  textColumn("destination", "Destination", "minmax(100px, 1.1fr)", ({ destination }) => destination),
  textColumn("rule", "Rule", "minmax(100px, 1.1fr)", ({ rule }) => rule, { line: 0 }),
  { key: "occasion", label: "Occasion", width: "104px", line: 0, cell: ({ occasion }) => occasion },
  textColumn(
    "error",
    "Last answer",
    "minmax(120px, 1.6fr)",
    ({ error, tries }) => error || (tries.at(-1)?.answer ?? ""),
  ),
  {
    key: "attempts",
    label: "Attempts",
    width: "64px",
    line: 0,
    end: true,
    sort: ({ attempts }) => attempts,
    cell: ({ attempts }) => attempts,
  },
  {
    key: "time",
    label: "Decided",
    width: "76px",
    line: 1,
    end: true,
    sort: ({ createTime }) => createTime,
    cell: ({ createTime }) => <Time at={createTime} short />,
  },
];

const asked = () => {
  const given = address.value.parameters;
  const filled = Object.fromEntries(parameters.map((name) => [name, given.get(name) ?? ""]));
  return {
    ...filled,
    ...momentsOf(given.get("range")),
    status: Number(given.get("status") ?? 0) as DeliveryStatus,
    pageSize: 200,
  };
};

/** The shortest time between two questions while events change. */
const askAgainMs = 2000;

async function readPage(
  query: ReturnType<typeof asked>,
  pageToken = "",
  options: { signal?: AbortSignal } = {},
): Promise<Page<Delivery>> {
  const page = await deliveries.listDeliveries({ ...query, pageToken }, options);
  return { rows: page.deliveries, next: page.nextPageToken, total: Number(page.totalCount) };
}

/** The states that a list can be filtered by, and their words. */
const states = Object.entries(statusWords).flatMap(([status, { word }]) =>
  status === "0" ? [] : [[status, word] as const],
);

/** Lists sent and unsent notifications with the receivers' answers. */
export function DeliveriesScreen() {
  const reading = useSignal(false);
  // Answers of receivers are no news: the list is read again as the present moves, too.
  const news = useNews(askAgainMs);
  const { list, waiting } = useNewest({
    list: useList(asked, readPage),
    read: readPage,
    keyOf: ({ id }) => id,
    timeOf: ({ createTime }) => createTime,
    beat: `${news.value} ${nowMs.value}`,
    reading,
  });
  const { opened, changed } = useOpened(list);
  const given = address.value.parameters;
  const names = useNames(
    opened ? [...list.rows, opened] : list.rows,
    [eventOf(given.get("eventId") ?? "")],
    [given.get("entityId") ?? ""],
  );
  const columns = useMemo(() => columnsOf(names), [names]);
  return (
    <ListScreen
      title="Deliveries"
      list={list}
      tools={
        <>
          <ChoiceFilter name="status" label="State" any="Any state" choices={states} />
          <TimeRangeChoice
            any="Any time"
            value={given.get("range") ?? ""}
            change={(range) => setParameters({ range })}
          />
          <NameFilters names={names} />
        </>
      }
      none="Nothing was sent yet."
      noMatch="No delivery matches these filters."
      about={
        <p>
          A delivery appears when a rule matches: it sends one to each of its destinations. Of an occurrence of which
          you heard nothing, its own page says why.
        </p>
      }
      above={
        <>
          <Troubles rows={list.rows} changed={list.again} />
          <WaitingRows count={waiting} reading={reading} />
        </>
      }
      columns={columns}
      reading={reading}
      rowKey={({ id }) => id}
      hrefOf={({ id }) => hereWith({ open: id })}
      tone={({ status }) => statusWords[status]?.tone ?? ""}
    >
      {opened === null && (
        <Dialog title="Delivery" close={() => setParameters({ open: undefined })}>
          <p>
            This delivery is not stored any more. What it was about may be among the{" "}
            <a href={linkTo(["events"], { status: "any" })}>events</a>.
          </p>
        </Dialog>
      )}
      {opened && (
        <Dialog title="Delivery" close={() => setParameters({ open: undefined })}>
          <DeliveryCard delivery={opened} changed={changed} subject />
          {!endsSummary(opened) && opened.memberCount === 0 && (
            <>
              <h3>How the rule decided</h3>
              <Explanation key={opened.id} rule={opened.rule} about={{ case: "subject", value: opened.subject }} />
            </>
          )}
        </Dialog>
      )}
    </ListScreen>
  );
}

/** The delivery that the address opens, wherever in the list it is: undefined if none, null if it is not stored. It stays open when it changes. */
function useOpened(list: List<Delivery>) {
  const answer = useAnswer(async (signal) => {
    const id = address.value.parameters.get("open");
    if (id === null) return undefined;
    // What waits goes out without a call of this page.
    nowMs.value;
    const got = await oneOrNull(deliveries.getDelivery({ id }, { signal }));
    return { id, delivery: got?.delivery ?? null };
  });
  const id = address.value.parameters.get("open");
  const got = answer.value.value?.id === id ? answer.value.value?.delivery : undefined;
  return {
    opened: id === null ? undefined : got === undefined ? list.rows.find((row) => row.id === id) : got,
    changed() {
      answer.peek().again();
      list.again();
    },
  };
}

/** Tells whether a delivery ends a summary: it is about no event, metric or window, and rules decide about its members. */
const endsSummary = ({ occasion, eventId, entityId, metricName }: Delivery) =>
  occasion === "clear" && eventId === "" && entityId === "" && metricName === "";
