import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { type AuditEntry, AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { address, hereWith, setParameters } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { useList } from "../../data/list.ts";
import { type Column, textColumn } from "../../ui/column.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { ListScreen } from "../../ui/list-screen.tsx";
import { nameColumn } from "../../ui/name-column.tsx";
import { ChoiceFilter } from "../../ui/text-filters.tsx";
import { Time } from "../../ui/time.tsx";
import { momentsOf, TimeRangeChoice } from "../../ui/time-range.tsx";
import ui from "../../ui/ui.module.css";

const auditLog = clientOf(AuditLogService);
const clients = clientOf(ApiClientService);

const shortName = (rpc: string) => rpc.slice(rpc.lastIndexOf("/") + 1);

const columns: readonly Column<AuditEntry>[] = [
  { key: "time", label: "When", width: "100px", line: 1, cell: ({ time }) => <Time at={time} short /> },
  nameColumn(
    "What",
    "minmax(160px, 1.2fr)",
    ({ rpc }) => shortName(rpc),
    ({ rpc }) => rpc,
  ),
  textColumn("resource", "To what", "minmax(160px, 2fr)", ({ resource }) => resource),
  textColumn("client", "By", "minmax(120px, 1fr)", ({ client }) => client?.name ?? ""),
  { key: "outcome", label: "Outcome", width: "140px", cell: ({ outcome }) => (outcome === "OK" ? "done" : outcome) },
];

/** The filters of the address, as the request has them. Reads signals. */
function filters() {
  const { parameters } = address.value;
  return {
    client: parameters.get("client") ?? "",
    rpc: parameters.get("rpc") ?? "",
    ...momentsOf(parameters.get("range")),
    pageSize: 200,
  };
}

/** What clients did or tried to do, the newest first. */
export function Audit() {
  const list = useList(filters, async (query, pageToken, options) => {
    const page = await auditLog.listAuditEntries({ ...query, pageToken }, options);
    return { rows: page.entries, next: page.nextPageToken, total: Number(page.totalCount) };
  });
  const opened = list.rows.find(({ id }) => id === address.value.parameters.get("open"));
  return (
    <ListScreen
      title="Audit log"
      list={list}
      tools={<Filters rows={list.rows} />}
      refresh
      none="No entry matches these filters."
      about={<p>Every call that changes something leaves an entry, whether it was done or refused.</p>}
      columns={columns}
      rowKey={({ id }) => id}
      hrefOf={({ id }) => hereWith({ open: id })}
      tone={({ outcome }) => (outcome === "OK" ? "" : "warning")}
    >
      {opened && <Entry entry={opened} />}
    </ListScreen>
  );
}

function Filters({ rows }: { rows: readonly AuditEntry[] }) {
  const known = useAnswer((signal) => clients.listApiClients({ pageSize: 1000 }, { signal }));
  const { parameters } = address.value;
  const chosen = parameters.get("client") ?? "";
  const offered = new Map(known.value.value?.apiClients.map(({ id, name }) => [id, name]));
  for (const { client } of rows) if (client && !offered.has(client.id)) offered.set(client.id, client.name);
  if (chosen !== "" && !offered.has(chosen)) offered.set(chosen, chosen);
  return (
    <>
      <ChoiceFilter name="client" label="Client" any="All clients" choices={[...offered]} />
      <input
        type="search"
        aria-label="Operation"
        placeholder="Operation"
        list="audit-operations"
        value={parameters.get("rpc") ?? ""}
        onChange={({ currentTarget }) => setParameters({ rpc: currentTarget.value.trim() })}
      />
      <datalist id="audit-operations">
        {[...new Set(rows.map(({ rpc }) => shortName(rpc)))].sort().map((rpc) => (
          <option key={rpc} value={rpc} />
        ))}
      </datalist>
      <TimeRangeChoice
        any="Any time"
        value={parameters.get("range") ?? ""}
        change={(range) => setParameters({ range })}
      />
    </>
  );
}

function Entry({ entry }: { entry: AuditEntry }) {
  const { rpc, resource, client, outcome, requestId, keyPrefix, session, time } = entry;
  const facts = [
    ["When", <Time key="time" at={time} />],
    ["Operation", rpc],
    ["To what", resource],
    ["Client", client && `${client.name} (${client.id})`],
    ["Outcome", outcome],
    ["Key", keyPrefix],
    ["Session of the console", session],
    ["Request", requestId],
  ] as const;
  return (
    <Dialog title={shortName(rpc)} close={() => setParameters({ open: undefined })}>
      <dl class={ui.facts}>
        {facts
          .filter(([, value]) => value !== "" && value !== undefined)
          .map(([name, value]) => (
            <div key={name} class={ui.fact}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </Dialog>
  );
}
