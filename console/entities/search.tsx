import { create } from "@bufbuild/protobuf";
import type { Value } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Entity } from "#gen/belfry/entities/v1/entity_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { conditionCount } from "../clause/draft.ts";
import { ClauseEditor } from "../clause/editor.tsx";
import { knownFields } from "../clause/fields.ts";
import { searchClauses } from "../clause/search-clause.ts";
import { address, hereWith, linkTo, setParameters } from "../data/address.ts";
import { clientOf } from "../data/calls.ts";
import { dimensionsText } from "../data/dimensions.ts";
import { useList } from "../data/list.ts";
import { allOf, clauseOf, clauseText, readClause } from "../events/query.ts";
import { type Column, textColumn } from "../ui/column.ts";
import { valueText } from "../ui/facts.tsx";
import { ListScreen } from "../ui/list-screen.tsx";
import { nameColumn } from "../ui/name-column.tsx";
import { Doubt } from "../ui/problem.tsx";
import { Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import entitiesLook from "./entities.module.css";
import { stateText } from "./states.ts";

const entities = clientOf(EntityService);

const all = create(ClauseSchema, { filter: { field: "id", operation: Operation.OP_EXISTS } });

/** The clause of the address: conditions, and what was typed into the search field. Reads signals. @throws as readClause */
function clauseHere(): Clause {
  const { parameters } = address.value;
  const own = readClause(parameters.get("where"));
  const text = parameters.get("text") ?? "";
  const named =
    text === ""
      ? []
      : [
          create(ClauseSchema, {
            filter: {
              field: "name",
              operation: Operation.OP_TEXT,
              value: { kind: { case: "stringValue", value: text } },
            },
          }),
        ];
  const clauses = [...(own ? [own] : []), ...named];
  return clauses.length === 0 ? all : allOf(clauses);
}

const searchInput = () => ({
  query: { clause: clauseHere() },
  groupBy: address.value.parameters.get("group") ? [{ field: address.value.parameters.get("group") ?? "" }] : [],
});

const columns: readonly Column<Entity>[] = [
  nameColumn("Name", "minmax(160px, 1.5fr)", ({ displayName }) => displayName),
  textColumn("dimensions", "Dimensions", "minmax(160px, 2fr)", ({ dimensions }) => dimensionsText(dimensions)),
  textColumn("type", "Type", "minmax(90px, 1fr)", ({ schemaIds }) => schemaIds.at(-1) ?? ""),
  {
    key: "state",
    label: "State",
    width: "130px",
    cell: ({ productionState }) => stateText(productionState),
    sort: ({ productionState }) => stateText(productionState),
  },
  {
    key: "liveness",
    label: "Last data",
    width: "92px",
    line: 1,
    end: true,
    sort: ({ livenessTime }) => livenessTime,
    cell: ({ livenessTime }) => (livenessTime === 0n ? "–" : <Time at={livenessTime} short />),
  },
];

/** How many entities have a value of the field that they are grouped by. */
interface Group {
  readonly values: readonly unknown[];
  readonly count: bigint;
}

type Asked = ReturnType<typeof searchInput>;

/** A page of entities. The first one has the groups, too. */
async function readPage({ query, groupBy }: Asked, cursor: string, options: { signal?: AbortSignal }) {
  const asked = cursor === "" ? { query, groupBy } : { query, pageInput: { limit: 500, cursor } };
  const { entities: found, pageInfo, hint } = await entities.searchEntities({ searchInput: asked }, options);
  const next = pageInfo?.hasNext ? pageInfo.endCursor : "";
  return { found, hint, page: { rows: found?.entities ?? [], next, total: Number(pageInfo?.totalCount ?? 0n) } };
}

export function EntitySearch() {
  const groups = useSignal<readonly Group[]>([]);
  const hint = useSignal("");
  const list = useList(searchInput, async (asked, cursor, options) => {
    const { page, found, hint: doubt } = await readPage(asked, cursor, options);
    if (cursor === "") {
      groups.value = found?.groups ?? [];
      hint.value = doubt;
    }
    return page;
  });
  const { failure } = list;
  const own = clauseOf(address.value.parameters.get("where"));
  const editing = useSignal(own !== undefined);
  const prefix = /^search_input\.query\.clause(?:\.and\.clauses\[0\])?/;
  const errors = own
    ? (failure?.fields ?? []).map(({ field, description }) => ({ field: field.replace(prefix, ""), description }))
    : [];
  return (
    <ListScreen
      title="Entities"
      list={errors.length > 0 ? { ...list, failure: undefined } : list}
      counted={["entity", "entities"]}
      filter="Search by name"
      tools={
        <>
          <Grouping />
          <button
            type="button"
            aria-expanded={editing.value}
            onClick={() => {
              editing.value = !editing.value;
            }}
          >
            Conditions{own ? ` (${conditionCount(searchClauses, own)})` : ""}
          </button>
        </>
      }
      none="There are no entities yet."
      noMatch="No entity matches."
      about={
        <p>
          An entity appears with the first model, metric or event that names its dimensions.{" "}
          <a href={linkTo(["settings", "send"])}>Send data</a>
        </p>
      }
      above={
        <>
          {editing.value && (
            <ClauseEditor
              of="entity"
              clause={own}
              errors={errors}
              apply={(clause) => setParameters({ where: clause && clauseText(clause) })}
            />
          )}
          <Doubt hint={failure === undefined ? hint.value : ""} />
          <Groups groups={groups.value} />
        </>
      }
      columns={columns}
      rowKey={({ id }) => id}
      hrefOf={({ id }) => linkTo(["entities", id])}
    />
  );
}

function Grouping() {
  const id = useId();
  return (
    <>
      <input
        type="search"
        class={entitiesLook.groupField}
        aria-label="Group by a field"
        placeholder="Group by a field"
        list={id}
        value={address.value.parameters.get("group") ?? ""}
        onChange={({ currentTarget }) => setParameters({ group: currentTarget.value })}
      />
      <datalist id={id}>
        {knownFields("entity").map(({ name, label }) => (
          <option key={name} value={name} label={label} />
        ))}
      </datalist>
    </>
  );
}

const groupsMax = 60;

/** The groups, the largest first; one narrows the search to it. */
function Groups({ groups }: { groups: readonly Group[] }) {
  const field = address.value.parameters.get("group");
  if (field === null || groups.length === 0) return null;
  return (
    <ul class={entitiesLook.groups} aria-label={`Groups by ${field}`}>
      {groups.slice(0, groupsMax).map(({ values, count }) => {
        const { kind } = (values[0] ?? { kind: { case: undefined } }) as Pick<Value, "kind">;
        const none = kind.case === undefined || kind.case === "nullValue";
        const text = none ? "none" : valueText(kind.value);
        return (
          <li key={`${kind.case} ${text}`}>
            <a href={groupLink(field, none ? undefined : text)}>{text === "" ? '""' : text}</a>{" "}
            <span class={ui.quiet}>{count.toLocaleString("en")}</span>
          </li>
        );
      })}
      {groups.length > groupsMax && <li class={ui.quiet}>and {groups.length - groupsMax} more</li>}
    </ul>
  );
}

/** Returns the link to a group's entities, keeping the current search. */
function groupLink(field: string, value: string | undefined): string {
  const exists = { filter: { field, operation: Operation.OP_EXISTS } };
  const clause = create(
    ClauseSchema,
    value === undefined
      ? { noneOf: { clause: exists } }
      : { filter: { field, operation: Operation.OP_EQUALS, value: { kind: { case: "stringValue", value } } } },
  );
  const own = clauseOf(address.value.parameters.get("where"));
  return hereWith({ where: clauseText(own ? allOf([own, clause]) : clause) });
}
