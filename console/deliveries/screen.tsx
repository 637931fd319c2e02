import {
  type Delivery,
  DeliveryService,
  type DeliveryStatus,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { address, setParameters } from "../frame/address.ts";
import { clientOf } from "../frame/calls.ts";
import { useAnswer } from "../parts/answer.ts";
import { Dialog } from "../parts/dialog.tsx";
import { useLaterPages } from "../parts/later-pages.ts";
import { Empty, Problem } from "../parts/problem.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
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

const filled = () =>
  Object.fromEntries(texts.map(([name]) => [name, address.value.parameters.get(name) ?? ""])) as Record<
    (typeof texts)[number][0],
    string
  >;

const columns: readonly Column<Delivery>[] = [
  { key: "status", label: "State", width: "120px", line: 1, cell: ({ status }) => <DeliveryState status={status} /> },
  {
    key: "destination",
    label: "Destination",
    width: "minmax(110px, 1fr)",
    line: 1,
    cell: ({ destination }) => <strong>{destination}</strong>,
  },
  { key: "rule", label: "Rule", width: "minmax(110px, 1fr)", cell: ({ rule }) => rule },
  { key: "occasion", label: "Occasion", width: "110px", cell: ({ occasion }) => occasion },
  {
    key: "error",
    label: "Last answer",
    width: "minmax(160px, 2fr)",
    cell: ({ error, tries }) => error || tries.at(-1)?.answer,
    title: ({ error, tries }) => error || (tries.at(-1)?.answer ?? ""),
  },
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

/** What was sent, what came back, and what was not sent. */
export function DeliveriesScreen() {
  const answer = useAnswer(async (signal) => {
    const status = Number(address.value.parameters.get("status") ?? 0) as DeliveryStatus;
    const summary = address.value.parameters.get("summary") ?? "";
    const asked = { ...filled(), summary, status, pageSize: 200 };
    const page = await deliveries.listDeliveries(asked, { signal });
    // A link may name one that is on no page yet.
    const id = address.value.parameters.get("open") ?? "";
    const isElsewhere = id !== "" && !page.deliveries.some((each) => each.id === id);
    const named = isElsewhere ? await deliveries.getDelivery({ id }, { signal }).catch(() => undefined) : undefined;
    return { asked, page, named: named?.delivery };
  });
  const { value, loading, failure, again } = answer.value;
  const later = useLaterPages(value, value?.page.nextPageToken ?? "", async ({ asked }, pageToken) => {
    const page = await deliveries.listDeliveries({ ...asked, pageToken });
    return { rows: page.deliveries, next: page.nextPageToken };
  });
  const rows = [...(value?.page.deliveries ?? []), ...later.rows];
  const total = Number(value?.page.totalCount ?? 0n);
  const open = address.value.parameters.get("open");
  const opened = [...rows, ...(value?.named ? [value.named] : [])].find(({ id }) => id === open);
  const filtered = address.value.parameters.size > 0;
  return (
    <div class="screen">
      <div class="screen-head">
        <h1>Deliveries</h1>
        <p class="count" role="status">
          {loading ? "Loading…" : `${total.toLocaleString("en")} in all`}
        </p>
        <div class="tools">
          {address.value.parameters.has("summary") && (
            <button type="button" onClick={() => setParameters({ summary: undefined })}>
              Of one summary ×
            </button>
          )}
          <Filters />
          <button type="button" onClick={again}>
            Refresh
          </button>
        </div>
      </div>
      <Problem failure={failure} again={again} />
      <Problem failure={later.failure} again={later.again} />
      {rows.length === 0 && value ? (
        <Empty title={filtered ? "No delivery matches these filters." : "Nothing was sent yet."}>
          <p>
            A delivery appears when a rule's trigger matches: the rule sends it to each of its destinations. Of an
            occurrence of which you heard nothing, its own page says why.
          </p>
        </Empty>
      ) : (
        <Table
          label="Deliveries"
          rows={rows}
          columns={columns}
          rowKey={({ id }) => id}
          open={({ id }) => setParameters({ open: id })}
          total={total}
          more={() => void later.more()}
          tone={({ status }) => statusWords[status]?.tone ?? ""}
        />
      )}
      {opened && (
        <Dialog title="Delivery" close={() => setParameters({ open: undefined })}>
          <DeliveryCard delivery={opened} changed={again} subject />
          {!endsSummary(opened) && opened.memberCount === 0 && (
            <>
              <h3>How the rule decided</h3>
              <Explanation key={opened.id} rule={opened.rule} about={{ case: "subject", value: opened.subject }} />
            </>
          )}
        </Dialog>
      )}
    </div>
  );
}

/** Tells whether a delivery ends a summary: it is about no event, metric or window, and rules decide about its members. */
const endsSummary = ({ occasion, eventId, entityId, metricName }: Delivery) =>
  occasion === "clear" && eventId === "" && entityId === "" && metricName === "";

function Filters() {
  const now = filled();
  return (
    <>
      <select
        aria-label="State"
        value={address.value.parameters.get("status") ?? ""}
        onChange={({ currentTarget }) => setParameters({ status: currentTarget.value })}
      >
        <option value="">Any state</option>
        {Object.entries(statusWords)
          .filter(([status]) => status !== "0")
          .map(([status, { word }]) => (
            <option key={status} value={status}>
              {word}
            </option>
          ))}
      </select>
      {texts.map(([name, label]) => (
        <input
          key={name}
          type="search"
          class="short"
          aria-label={label}
          placeholder={label}
          value={now[name]}
          onChange={({ currentTarget }) => setParameters({ [name]: currentTarget.value })}
        />
      ))}
    </>
  );
}
