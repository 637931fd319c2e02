import type { Trigger } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { address, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { useList } from "../../data/list.ts";
import { may } from "../../data/session.ts";
import type { Column } from "../../ui/column.ts";
import { ListScreen } from "../../ui/list-screen.tsx";
import { nameColumn } from "../../ui/name-column.tsx";
import { narrow } from "../../ui/narrow.ts";
import { ChoiceFilter, TextFilters } from "../../ui/text-filters.tsx";
import { TroubleMark } from "../../ui/trouble.tsx";
import { RuleLinks } from "../rule-links.tsx";
import { sourceWords, typeWords } from "./words.ts";

const triggers = clientOf(TriggerService);

const columns: readonly Column<Trigger>[] = [
  nameColumn(
    "Name",
    "minmax(140px, 1fr)",
    ({ name }) => name,
    ({ name, description }) => [name, description].filter((text) => text !== "").join(": "),
  ),
  {
    key: "source",
    label: "Looks at",
    width: "140px",
    cell: ({ type }) => type?.source.case && sourceWords[type.source.case],
  },
  {
    key: "type",
    label: "Matches",
    width: "minmax(180px, 2.5fr)",
    line: 2,
    cell: ({ type, trouble }) =>
      trouble === "" ? typeWords(type) : <TroubleMark text={`Maybe nothing: ${trouble}`} />,
    title: ({ type, trouble }) => trouble || typeWords(type),
  },
  {
    key: "rules",
    label: "Rules",
    width: "minmax(110px, 1fr)",
    cell: ({ ruleNames }) => <RuleLinks names={ruleNames} none="none" />,
    title: ({ ruleNames }) => ruleNames.join(", "),
  },
  {
    key: "sent",
    label: "Sent in 24 h",
    width: "92px",
    line: 1,
    end: true,
    sort: ({ recentNotificationCount }) => recentNotificationCount,
    cell: ({ recentNotificationCount }) => recentNotificationCount.toLocaleString("en"),
  },
];

const narrowColumns = columns.filter(({ key }) => key !== "source");

const asked = () => ({
  name: address.value.parameters.get("text") ?? "",
  type: address.value.parameters.get("source") ?? "",
  ruleNames: address.value.parameters.get("rule") ?? "",
  pageSize: 200,
});

/** All triggers: what each looks at, which rules use it, and what was sent because of it. */
export function TriggerList() {
  const list = useList(asked, async (query, pageToken, options) => {
    const page = await triggers.listTriggers({ ...query, pageToken }, options);
    return { rows: page.triggers, next: page.nextPageToken, total: Number(page.totalCount) };
  });
  return (
    <ListScreen
      title="Triggers"
      list={list}
      counted={["trigger", "triggers"]}
      filter="Part of the name"
      tools={
        <>
          <ChoiceFilter name="source" label="Source" any="Any source" choices={Object.entries(sourceWords)} />
          <TextFilters texts={[["rule", "Rule"]]} />
        </>
      }
      refresh
      make={may(TriggerService.method.createTrigger) && ["New trigger", linkTo(["rules", "triggers"], { new: "1" })]}
      none="There are no triggers yet."
      noMatch="No trigger matches these filters."
      about={
        <p>
          A trigger says what a rule waits for: an event of some severity, a metric out of its bounds, or data that stay
          away. While one is written, the page shows which events it would have matched.
        </p>
      }
      columns={narrow.value ? narrowColumns : columns}
      rowKey={({ name }) => name}
      hrefOf={({ name }) => linkTo(["rules", "triggers", name])}
      tone={({ trouble }) => (trouble === "" ? "" : "critical")}
    />
  );
}
