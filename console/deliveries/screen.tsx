import {
  type Delivery,
  DeliveryService,
  type DeliveryStatus,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { address, hereWith, setParameters } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { useList } from "../data/list.ts";
import { type Column, textColumn } from "../ui/column.ts";
import { Dialog } from "../ui/dialog.tsx";
import { ListScreen } from "../ui/list-screen.tsx";
import { nameColumn } from "../ui/name-column.tsx";
import { Problem } from "../ui/problem.tsx";
import { ChoiceFilter, TextFilters } from "../ui/text-filters.tsx";
import { Time } from "../ui/time.tsx";
import { DeliveryCard, DeliveryState, statusWords } from "./card.tsx";
import { Explanation } from "./explanation.tsx";

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
  return { ...filled, summary: parameters.get("summary") ?? "", status, pageSize: 200 };
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
  const open = address.value.parameters.get("open");
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
      columns={columns}
      rowKey={({ id }) => id}
      hrefOf={({ id }) => hereWith({ open: id })}
      tone={({ status }) => statusWords[status]?.tone ?? ""}
    >
      {open && (
        <Dialog title="Delivery" close={() => setParameters({ open: undefined })}>
          <Opened key={open} id={open} listed={list.rows.find(({ id }) => id === open)} changed={list.again} />
        </Dialog>
      )}
    </ListScreen>
  );
}

/** Shows one of the list, or one that an address names and that is on no page yet. */
function Opened({ id, listed, changed }: { id: string; listed: Delivery | undefined; changed(): void }) {
  const answer = useAnswer(
    async (signal) => (listed ? undefined : (await deliveries.getDelivery({ id }, { signal })).delivery),
    listed === undefined,
  );
  const { value, failure, again } = answer.value;
  const delivery = listed ?? value;
  if (delivery === undefined) return <Problem failure={failure} again={again} />;
  return (
    <>
      <DeliveryCard
        delivery={delivery}
        changed={() => {
          changed();
          again();
        }}
        subject
      />
      {!endsSummary(delivery) && delivery.memberCount === 0 && (
        <>
          <h3>How the rule decided</h3>
          <Explanation key={delivery.id} rule={delivery.rule} about={{ case: "subject", value: delivery.subject }} />
        </>
      )}
    </>
  );
}

/** Tells whether a delivery ends a summary: it is about no event, metric or window, and rules decide about its members. */
const endsSummary = ({ occasion, eventId, entityId, metricName }: Delivery) =>
  occasion === "clear" && eventId === "" && entityId === "" && metricName === "";
