import type { Trigger } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { address, goTo, linkTo, setParameters } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { useLaterPages } from "../../data/later-pages.ts";
import { may } from "../../data/session.ts";
import { narrow } from "../../ui/narrow.ts";
import { Empty, Problem } from "../../ui/problem.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { TroubleMark } from "../../ui/trouble.tsx";
import { RuleLinks } from "../rule-links.tsx";
import { sourceWords, typeWords } from "./words.ts";

const triggers = clientOf(TriggerService);

const newTrigger = () => linkTo(["rules", "triggers"], { new: "1" });

const columns: readonly Column<Trigger>[] = [
  {
    key: "name",
    label: "Name",
    width: "minmax(140px, 1fr)",
    line: 1,
    cell: ({ name }) => <strong>{name}</strong>,
    title: ({ name, description }) => [name, description].filter((text) => text !== "").join(": "),
  },
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
    cell: ({ recentNotificationCount }) => recentNotificationCount.toLocaleString("en"),
  },
];

const asked = () => ({
  name: address.value.parameters.get("text") ?? "",
  type: address.value.parameters.get("source") ?? "",
  ruleNames: address.value.parameters.get("rule") ?? "",
  pageSize: 200,
});

/** All triggers: what each looks at, which rules use it, and what was sent because of it. */
export function TriggerList() {
  const answer = useAnswer(async (signal) => {
    const query = asked();
    return { query, page: await triggers.listTriggers(query, { signal }) };
  });
  const { value, loading, failure, again } = answer.value;
  const later = useLaterPages(value, value?.page.nextPageToken ?? "", async ({ query }, pageToken) => {
    const page = await triggers.listTriggers({ ...query, pageToken });
    return { rows: page.triggers, next: page.nextPageToken };
  });
  const rows = [...(value?.page.triggers ?? []), ...later.rows];
  const total = Number(value?.page.totalCount ?? 0n);
  const filtered = address.value.parameters.size > 0;
  return (
    <>
      <div class="screen-head">
        <h1>Triggers</h1>
        <p class="count" role="status">
          {loading ? "Searching…" : `${total.toLocaleString("en")} ${total === 1 ? "trigger" : "triggers"}`}
        </p>
        <div class="tools">
          <Filters />
          <button type="button" onClick={again}>
            Refresh
          </button>
          {may(TriggerService.method.createTrigger) && (
            <a class="button" href={newTrigger()}>
              New trigger
            </a>
          )}
        </div>
      </div>
      <Problem failure={failure} again={again} />
      <Problem failure={later.failure} again={later.again} />
      {rows.length === 0 && value ? (
        <Empty title={filtered ? "No trigger matches these filters." : "There are no triggers yet."}>
          <p>
            A trigger says what a rule waits for: an event of some severity, a metric out of its bounds, or data that
            stay away. While one is written, the page shows which events it would have matched.
          </p>
        </Empty>
      ) : (
        <Table
          label="Triggers"
          rows={rows}
          columns={narrow.value ? columns.filter(({ key }) => key !== "source") : columns}
          rowKey={({ name }) => name}
          open={({ name }) => goTo(linkTo(["rules", "triggers", name]))}
          total={total}
          more={() => void later.more()}
          tone={({ trouble }) => (trouble === "" ? "" : "critical")}
        />
      )}
    </>
  );
}

function Filters() {
  const { parameters } = address.value;
  return (
    <>
      <input
        type="search"
        aria-label="Part of the name"
        placeholder="Part of the name"
        value={parameters.get("text") ?? ""}
        onInput={({ currentTarget }) => setParameters({ text: currentTarget.value }, false)}
      />
      <select
        aria-label="Source"
        value={parameters.get("source") ?? ""}
        onChange={({ currentTarget }) => setParameters({ source: currentTarget.value })}
      >
        <option value="">Any source</option>
        {Object.entries(sourceWords).map(([source, word]) => (
          <option key={source} value={source}>
            {word}
          </option>
        ))}
      </select>
      <input
        type="search"
        class="short"
        aria-label="Rule"
        placeholder="Rule"
        value={parameters.get("rule") ?? ""}
        onChange={({ currentTarget }) => setParameters({ rule: currentTarget.value })}
      />
    </>
  );
}
