import {
  type Delivery,
  DeliveryService,
  type DeliveryStatus,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { address, hereWith, setParameters } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { type List, useList } from "../data/list.ts";
import { oneOrNull } from "../data/one-or-null.ts";
import { type Column, textColumn } from "../ui/column.ts";
import { Dialog } from "../ui/dialog.tsx";
import { ListScreen } from "../ui/list-screen.tsx";
import { nameColumn } from "../ui/name-column.tsx";
import { ChoiceFilter, TextFilters } from "../ui/text-filters.tsx";
import { Time } from "../ui/time.tsx";
import { DeliveryCard, DeliveryState, statusWords } from "./card.tsx";
import { Explanation } from "./explanation.tsx";
import { groupText } from "./members.tsx";
import { Troubles } from "./troubles.tsx";

const deliveries = clientOf(DeliveryService);

/** The filters, which are parameters of the address and fields of the request. */
const texts = [
  ["rule", "Rule"],
  ["destination", "Destination"],
  ["trigger", "Trigger"],
  ["entityId", "Entity id"],
] as const;

const columns: readonly Column<Delivery>[] = [
  { key: "status", label: "State", width: "120px", line: 1, cell: ({ status }) => <DeliveryState status={status} /> },
  nameColumn("Destination", "minmax(110px, 1fr)", ({ destination }) => destination),
  textColumn("rule", "Rule", "minmax(110px, 1fr)", ({ rule }) => rule),
  textColumn("group", "Group", "minmax(110px, 2fr)", groupText),
  { key: "occasion", label: "Occasion", width: "110px", cell: ({ occasion }) => occasion },
  textColumn("error", "Last answer", "minmax(160px, 2fr)", ({ error, tries }) => error || (tries.at(-1)?.answer ?? "")),
  { key: "attempts", label: "Attempts", width: "72px", end: true, cell: ({ attempts }) => attempts },
  {
    key: "time",
    label: "Decided",
    width: "92px",
    line: 1,
    end: true,
    cell: ({ createTime }) => <Time at={createTime} short />,
  },
];

const asked = () => {
  const { parameters } = address.value;
  const filled = Object.fromEntries(texts.map(([name]) => [name, parameters.get(name) ?? ""]));
  const status = Number(parameters.get("status") ?? 0) as DeliveryStatus;
  return {
    ...filled,
    summary: parameters.get("summary") ?? "",
    eventId: parameters.get("eventId") ?? "",
    status,
    pageSize: 200,
  };
};

/** The states that a list can be filtered by, and their words. */
const states = Object.entries(statusWords).flatMap(([status, { word }]) =>
  status === "0" ? [] : [[status, word] as const],
);

/** What was sent, what came back, and what was not sent. */
export function DeliveriesScreen() {
  const list = useList(asked, async (query, pageToken, options) => {
    const page = await deliveries.listDeliveries({ ...query, pageToken }, options);
    return { rows: page.deliveries, next: page.nextPageToken, total: Number(page.totalCount) };
  });
  const { opened, changed } = useOpened(list);
  return (
    <ListScreen
      title="Deliveries"
      list={list}
      tools={
        <>
          {address.value.parameters.has("summary") && (
            <button type="button" onClick={() => setParameters({ summary: undefined })}>
              Of one summary ×
            </button>
          )}
          {address.value.parameters.has("eventId") && (
            <button type="button" onClick={() => setParameters({ eventId: undefined })}>
              Of one event ×
            </button>
          )}
          <ChoiceFilter name="status" label="State" any="Any state" choices={states} />
          <TextFilters texts={texts} />
        </>
      }
      refresh
      none="Nothing was sent yet."
      noMatch="No delivery matches these filters."
      about={
        <p>
          A delivery appears when a rule's trigger matches: the rule sends it to each of its destinations. Of an
          occurrence of which you heard nothing, its own page says why.
        </p>
      }
      above={<Troubles rows={list.rows} changed={list.again} />}
      columns={columns}
      rowKey={({ id }) => id}
      hrefOf={({ id }) => hereWith({ open: id })}
      tone={({ status }) => statusWords[status]?.tone ?? ""}
    >
      {opened === null && (
        <Dialog title="Delivery" close={() => setParameters({ open: undefined })}>
          <p>This delivery is not stored any more.</p>
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
