import type { Destination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { address, goTo, linkTo, setParameters } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { useLaterPages } from "../../data/later-pages.ts";
import { may } from "../../data/session.ts";
import { Empty, Problem } from "../../ui/problem.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { TextFilters } from "../../ui/text-filters.tsx";
import { kindNames, kindOf, kindWords } from "./kinds.ts";
import { DestinationState, stateTone } from "./state.tsx";

const destinations = clientOf(DestinationService);

const words = ({ type }: Destination) => (type ? kindWords(type) : { word: "", where: "" });

const columns: readonly Column<Destination>[] = [
  {
    key: "name",
    label: "Name",
    width: "minmax(130px, 1fr)",
    line: 1,
    cell: ({ name }) => <strong>{name}</strong>,
    title: ({ name }) => name,
  },
  { key: "kind", label: "Kind", width: "minmax(120px, 0.8fr)", cell: (row) => words(row).word },
  {
    key: "where",
    label: "Goes to",
    width: "minmax(140px, 1.4fr)",
    cell: (row) => words(row).where,
    title: (row) => words(row).where,
  },
  {
    key: "rules",
    line: 0,
    label: "Rules",
    width: "minmax(110px, 1fr)",
    cell: ({ ruleNames }) => ruleNames.join(", ") || <span class="quiet">none</span>,
    title: ({ ruleNames }) => ruleNames.join(", "),
  },
  {
    key: "sent",
    line: 0,
    label: "Sent in 24 h",
    width: "88px",
    end: true,
    cell: ({ recentNotificationCount }) => recentNotificationCount.toLocaleString("en"),
  },
  {
    key: "state",
    label: "State",
    width: "100px",
    line: 1,
    cell: (destination) => <DestinationState destination={destination} />,
    title: ({ disabledReason, trouble }) => disabledReason || trouble,
  },
];

const texts = [
  ["name", "Name"],
  ["ruleNames", "Rule"],
  ["tags", "Tag"],
] as const;

const parameter = (name: string) => address.value.parameters.get(name) ?? "";

export function DestinationList() {
  const answer = useAnswer(async (signal) => {
    const filters = Object.fromEntries(texts.map(([name]) => [name, parameter(name)]));
    const asked = { ...filters, type: parameter("type"), pageSize: 200 };
    return { asked, page: await destinations.listDestinations(asked, { signal }) };
  });
  const { value, loading, failure, again } = answer.value;
  const later = useLaterPages(value, value?.page.nextPageToken ?? "", async ({ asked }, pageToken) => {
    const page = await destinations.listDestinations({ ...asked, pageToken });
    return { rows: page.destinations, next: page.nextPageToken };
  });
  const rows = [...(value?.page.destinations ?? []), ...later.rows];
  const total = Number(value?.page.totalCount ?? 0n);
  return (
    <>
      <div class="screen-head">
        <h1>Destinations</h1>
        <p class="count" role="status">
          {loading ? "Loading…" : `${total.toLocaleString("en")} in all`}
        </p>
        <div class="tools">
          <Filters />
          {may(DestinationService.method.createDestination) && (
            <a class="button" href={linkTo(["rules", "destinations"], { new: "1" })}>
              New destination
            </a>
          )}
        </div>
      </div>
      <Problem failure={failure} again={again} />
      <Problem failure={later.failure} again={later.again} />
      {rows.length === 0 && value ? (
        <Empty
          title={
            address.value.parameters.size > 0
              ? "No destination matches these filters."
              : "There are no destinations yet."
          }
        >
          <p>
            A destination says where notifications go: an e-mail address, a chat, a paging service, a webhook. It gets
            something once a rule names it.
          </p>
        </Empty>
      ) : (
        <Table
          label="Destinations"
          rows={rows}
          columns={columns}
          rowKey={({ name }) => name}
          open={({ name }) => goTo(linkTo(["rules", "destinations", name]))}
          total={total}
          more={() => void later.more()}
          tone={stateTone}
        />
      )}
    </>
  );
}

function Filters() {
  return (
    <>
      <select
        aria-label="Kind"
        value={parameter("type")}
        onChange={({ currentTarget }) => setParameters({ type: currentTarget.value })}
      >
        <option value="">Any kind</option>
        {kindNames.map((name) => (
          <option key={name} value={name}>
            {kindOf(name).word}
          </option>
        ))}
      </select>
      <TextFilters texts={texts} />
    </>
  );
}
