import type { Destination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { address, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { useList } from "../../data/list.ts";
import { may } from "../../data/session.ts";
import { type Column, textColumn } from "../../ui/column.ts";
import { ListScreen } from "../../ui/list-screen.tsx";
import { nameColumn } from "../../ui/name-column.tsx";
import { ChoiceFilter, TextFilters } from "../../ui/text-filters.tsx";
import ui from "../../ui/ui.module.css";
import { kindNames, kindOf, kindWords } from "./kinds.ts";
import { DestinationState, stateTone } from "./state.tsx";

const destinations = clientOf(DestinationService);

const words = ({ type }: Destination) => (type ? kindWords(type) : { word: "", where: "" });

const columns: readonly Column<Destination>[] = [
  nameColumn("Name", "minmax(130px, 1fr)", ({ name }) => name),
  textColumn("kind", "Kind", "minmax(120px, 0.8fr)", (row) => words(row).word),
  textColumn("where", "Goes to", "minmax(140px, 1.4fr)", (row) => words(row).where),
  {
    key: "rules",
    line: 0,
    label: "Rules",
    width: "minmax(110px, 1fr)",
    cell: ({ ruleNames }) => ruleNames.join(", ") || <span class={ui.quiet}>none</span>,
    title: ({ ruleNames }) => ruleNames.join(", "),
  },
  {
    key: "sent",
    line: 0,
    label: "Sent in 24 h",
    width: "88px",
    end: true,
    sort: ({ recentNotificationCount }) => recentNotificationCount,
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

const asked = () => {
  const { parameters } = address.value;
  const filters = Object.fromEntries(texts.map(([name]) => [name, parameters.get(name) ?? ""]));
  return { ...filters, type: parameters.get("type") ?? "", pageSize: 200 };
};

export function DestinationList() {
  const list = useList(asked, async (query, pageToken, options) => {
    const page = await destinations.listDestinations({ ...query, pageToken }, options);
    return { rows: page.destinations, next: page.nextPageToken, total: Number(page.totalCount) };
  });
  return (
    <ListScreen
      title="Destinations"
      list={list}
      tools={
        <>
          <ChoiceFilter
            name="type"
            label="Kind"
            any="Any kind"
            choices={kindNames.map((name) => [name, kindOf(name).word])}
          />
          <TextFilters texts={texts} />
        </>
      }
      make={
        may(DestinationService.method.createDestination) && [
          "New destination",
          linkTo(["rules", "destinations"], { new: "1" }),
        ]
      }
      follows
      none="There are no destinations yet."
      noMatch="No destination matches these filters."
      about={
        <p>
          A destination says where notifications go: an e-mail address, a chat, a paging service, a webhook. It gets
          something once a rule names it.
        </p>
      }
      columns={columns}
      rowKey={({ name }) => name}
      hrefOf={({ name }) => linkTo(["rules", "destinations", name])}
      tone={stateTone}
    />
  );
}
