import { create, toJsonString } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Entity } from "#gen/belfry/entities/v1/entity_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import type { PageInfo } from "#gen/belfry/paging/v1/paging_pb.ts";
import { conditionCount } from "../clause/draft.ts";
import { ClauseEditor } from "../clause/editor.tsx";
import { knownFields } from "../clause/fields.ts";
import { searchClauses } from "../clause/search-clause.ts";
import { address, goTo, linkTo, setParameters } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { dimensionsText } from "../data/dimensions.ts";
import { useLaterPages } from "../data/later-pages.ts";
import { allOf, clauseOf, clauseText, readClause } from "../events/query.ts";
import { valueText } from "../ui/facts.tsx";
import { Empty, Problem } from "../ui/problem.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
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
  {
    key: "name",
    label: "Name",
    width: "minmax(160px, 1.5fr)",
    line: 1,
    cell: ({ name }) => <strong>{name}</strong>,
    title: ({ name }) => name,
  },
  {
    key: "dimensions",
    label: "Dimensions",
    width: "minmax(160px, 2fr)",
    cell: ({ dimensions }) => dimensionsText(dimensions),
    title: ({ dimensions }) => dimensionsText(dimensions),
  },
  { key: "type", label: "Type", width: "minmax(90px, 1fr)", cell: ({ schemaIds }) => schemaIds.at(-1) },
  { key: "state", label: "State", width: "130px", cell: ({ productionState }) => stateText(productionState) },
  {
    key: "liveness",
    label: "Last data",
    width: "92px",
    line: 1,
    end: true,
    cell: ({ livenessTime }) => (livenessTime === 0n ? "–" : <Time at={livenessTime} short />),
  },
];

const endOf = (page: PageInfo | undefined) => (page?.hasNext ? page.endCursor : "");

export function EntitySearch() {
  const answer = useAnswer(async (signal) => {
    const asked = searchInput();
    return { asked, page: await entities.searchEntities({ searchInput: asked }, { signal }) };
  });
  const { value, loading, failure, again } = answer.value;
  const later = useLaterPages(value, endOf(value?.page.pageInfo), async ({ asked: { query } }, cursor) => {
    const page = await entities.searchEntities({ searchInput: { query, pageInput: { limit: 500, cursor } } });
    return { rows: page.entities?.entities ?? [], next: endOf(page.pageInfo) };
  });
  const rows = [...(value?.page.entities?.entities ?? []), ...later.rows];
  const own = clauseOf(address.value.parameters.get("where"));
  const editing = useSignal(own !== undefined);
  const total = Number(value?.page.pageInfo?.totalCount ?? 0n);
  const prefix = /^search_input\.query\.clause(?:\.and\.clauses\[0\])?/;
  const errors = own
    ? (failure?.fields ?? []).map(({ field, description }) => ({ field: field.replace(prefix, ""), description }))
    : [];
  return (
    <div class="screen">
      <div class="screen-head">
        <h1>Entities</h1>
        <p class="count" role="status">
          {loading ? "Searching…" : value && `${total.toLocaleString("en")} ${total === 1 ? "entity" : "entities"}`}
        </p>
        <div class="tools">
          <input
            type="search"
            aria-label="Search by name"
            placeholder="Search by name"
            value={address.value.parameters.get("text") ?? ""}
            onInput={({ currentTarget }) => setParameters({ text: currentTarget.value }, false)}
          />
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
        </div>
      </div>
      {editing.value && (
        <ClauseEditor
          of="entity"
          clause={own}
          errors={errors}
          apply={(clause) => setParameters({ where: clause && clauseText(clause) })}
        />
      )}
      <Problem failure={errors.length > 0 ? undefined : failure} again={again} />
      <Problem failure={later.failure} again={later.again} />
      <Groups groups={value?.page.entities?.groups ?? []} />
      {rows.length === 0 && value ? (
        <Empty title={address.value.parameters.size > 0 ? "No entity matches." : "There are no entities yet."}>
          <p>
            An entity appears with the first model, metric or event that names its dimensions.{" "}
            <a href={linkTo(["settings", "send"])}>Send data</a>
          </p>
        </Empty>
      ) : (
        <Table
          label="Entities"
          rows={rows}
          columns={columns}
          rowKey={({ id }) => id}
          open={({ id }) => goTo(linkTo(["entities", id]))}
          total={total}
          more={() => void later.more()}
        />
      )}
    </div>
  );
}

function Grouping() {
  const id = useId();
  return (
    <>
      <input
        type="search"
        class="short"
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
function Groups({ groups }: { groups: readonly { values: readonly unknown[]; count: bigint }[] }) {
  const field = address.value.parameters.get("group");
  if (field === null || groups.length === 0) return null;
  return (
    <ul class="groups" aria-label={`Groups by ${field}`}>
      {groups.slice(0, groupsMax).map(({ values, count }) => {
        const value = (values[0] as { kind: { value: unknown } } | undefined)?.kind.value;
        const text = valueText(value);
        return (
          <li key={`${typeof value} ${text}`}>
            {text === "" ? (
              <span>none</span>
            ) : (
              <a href={linkTo(["entities"], { group: field, where: narrowed(field, text) })}>{text}</a>
            )}{" "}
            <span class="quiet">{count.toLocaleString("en")}</span>
          </li>
        );
      })}
      {groups.length > groupsMax && <li class="quiet">and {groups.length - groupsMax} more</li>}
    </ul>
  );
}

function narrowed(field: string, value: string): string {
  return toJsonString(
    ClauseSchema,
    create(ClauseSchema, {
      filter: { field, operation: Operation.OP_EQUALS, value: { kind: { case: "stringValue", value } } },
    }),
  );
}
