import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Rule } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { address, linkTo } from "../../data/address.ts";
import { clientOf, type Failure, failureOf } from "../../data/calls.ts";
import { useList } from "../../data/list.ts";
import { may } from "../../data/session.ts";
import type { Column } from "../../ui/column.ts";
import { ListScreen } from "../../ui/list-screen.tsx";
import { nameColumn } from "../../ui/name-column.tsx";
import { countText } from "../../ui/quantity.ts";
import { ChoiceFilter, TextFilters } from "../../ui/text-filters.tsx";
import { TroubleMark } from "../../ui/trouble.tsx";
import ui from "../../ui/ui.module.css";
import rulesLook from "../rules.module.css";
import { switchRule } from "./changes.ts";

const rules = clientOf(RuleService);

/** Filters that are texts, which are parameters of the address. */
const texts = [
  ["name", "Name"],
  ["trigger", "Trigger"],
  ["destination", "Destination"],
  ["tag", "Tag"],
] as const;

const parameter = (name: string) => address.value.parameters.get(name) ?? "";
const listed = (name: string) => (parameter(name) === "" ? [] : [parameter(name)]);

const asked = () => ({
  name: parameter("name"),
  triggerNames: listed("trigger"),
  destinationNames: listed("destination"),
  tags: listed("tag"),
  ...(parameter("enabled") !== "" && { enabled: parameter("enabled") === "true" }),
  pageSize: 200,
});

/** What a rule notifies of: its matchers, and the names of its triggers. */
const conditionsText = ({ matchers, triggerNames }: Rule) =>
  [...(matchers.length > 0 ? [matchers.join(" and ")] : []), ...triggerNames].join(", or ");

function columnsOf(changed: () => void, failed: (failure: Failure | undefined) => void): readonly Column<Rule>[] {
  return [
    {
      key: "enabled",
      label: "On",
      width: "64px",
      line: 1,
      sort: ({ enabled }) => (enabled ? 0 : 1),
      cell: ({ name, enabled }) => <Switch name={name} enabled={enabled} changed={changed} failed={failed} />,
    },
    nameColumn("Name", "minmax(130px, 1.2fr)", ({ name }) => name),
    {
      key: "alerts",
      label: "Which alerts",
      width: "minmax(150px, 1.5fr)",
      cell: (rule) => conditionsText(rule) || <span class={ui.quiet}>none</span>,
      title: conditionsText,
    },
    {
      key: "destinations",
      label: "Destinations",
      width: "minmax(110px, 1fr)",
      cell: ({ destinationNames, trouble }) =>
        trouble === "" ? destinationNames.join(", ") : <TroubleMark text={trouble} />,
      title: ({ destinationNames, trouble }) => trouble || destinationNames.join(", "),
    },
    {
      key: "sent",
      label: "Sent in 24 h",
      width: "96px",
      line: 1,
      end: true,
      sort: ({ recentNotificationCount }) => recentNotificationCount,
      cell: ({ name, recentNotificationCount: count }) =>
        count === 0n ? (
          <span class={ui.quiet}>0</span>
        ) : (
          <a href={linkTo(["deliveries"], { rule: name })} aria-label={`${countText(count)} sent in 24 h by ${name}`}>
            {count.toLocaleString("en")}
          </a>
        ),
    },
  ];
}

/** Whether a rule is on, and the switch of that. */
function Switch(props: {
  name: string;
  enabled: boolean;
  changed: () => void;
  failed: (failure: Failure | undefined) => void;
}) {
  const { name, enabled, changed, failed } = props;
  const busy = useSignal(false);
  const word = enabled ? "On" : "Off";
  if (!may(RuleService.method.updateRule))
    return (
      <span class={ui.state} data-tone={enabled ? "good" : "quiet"}>
        {word}
      </span>
    );
  const turn = async () => {
    busy.value = true;
    try {
      await switchRule(name, !enabled, changed);
      failed(undefined);
    } catch (error) {
      failed(failureOf(error));
    }
    busy.value = false;
  };
  return (
    <button
      type="button"
      class={rulesLook.switch}
      role="switch"
      aria-checked={enabled}
      aria-label={`Rule ${name}`}
      disabled={busy.value}
      onClick={() => void turn()}
    >
      <span class={rulesLook.knob} aria-hidden="true" /> {word}
    </button>
  );
}

export function RuleList() {
  const list = useList(asked, async (query, pageToken, options) => {
    const page = await rules.listRules({ ...query, pageToken }, options);
    return { rows: page.rules, next: page.nextPageToken, total: Number(page.totalCount) };
  });
  const switching = useSignal<Failure | undefined>(undefined);
  // The same columns each time, so that rows that are as they were are not drawn again.
  const columns = useMemo(
    () =>
      columnsOf(list.again, (each) => {
        switching.value = each;
      }),
    [],
  );
  return (
    <ListScreen
      title="Rules"
      list={list}
      failure={switching.value}
      tools={
        <>
          <ChoiceFilter
            name="enabled"
            label="On or off"
            any="On and off"
            choices={[
              ["true", "On"],
              ["false", "Off"],
            ]}
          />
          <TextFilters texts={texts} />
        </>
      }
      make={may(RuleService.method.createRule) && ["New rule", linkTo(["rules", "rules"], { new: "1" })]}
      none="There are no rules yet: no one is notified of anything."
      noMatch="No rule matches these filters."
      about={address.value.parameters.size === 0 && <FirstRule />}
      columns={columns}
      rowKey={({ name }) => name}
      hrefOf={({ name }) => linkTo(["rules", "rules", name])}
      tone={({ trouble }) => (trouble === "" ? "" : "critical")}
    />
  );
}

function FirstRule() {
  return (
    <>
      <p>A rule says which alerts notify which destinations.</p>
      {may(RuleService.method.createRule) && (
        <p>
          <a class={ui.button} href={linkTo(["rules", "guide"])}>
            Make the first one, step by step
          </a>
        </p>
      )}
    </>
  );
}
