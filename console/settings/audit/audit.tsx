import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { type AuditEntry, AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { address, setParameters } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { useLaterPages } from "../../data/later-pages.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Empty, Problem } from "../../ui/problem.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { endsOf, TimeRangeChoice } from "../../ui/time-range.tsx";
import { Listing } from "../listing.tsx";

const auditLog = clientOf(AuditLogService);
const clients = clientOf(ApiClientService);

const shortName = (rpc: string) => rpc.slice(rpc.lastIndexOf("/") + 1);

const columns: readonly Column<AuditEntry>[] = [
  { key: "time", label: "When", width: "100px", line: 1, cell: ({ time }) => <Time at={time} short /> },
  {
    key: "rpc",
    label: "What",
    width: "minmax(160px, 1.2fr)",
    line: 1,
    cell: ({ rpc }) => <strong>{shortName(rpc)}</strong>,
    title: ({ rpc }) => rpc,
  },
  {
    key: "resource",
    label: "To what",
    width: "minmax(160px, 2fr)",
    line: 2,
    cell: ({ resource }) => resource,
    title: ({ resource }) => resource,
  },
  {
    key: "client",
    label: "By",
    width: "minmax(120px, 1fr)",
    line: 2,
    cell: ({ client }) => client?.name,
    title: ({ client }) => client?.name ?? "",
  },
  { key: "outcome", label: "Outcome", width: "140px", cell: ({ outcome }) => (outcome === "OK" ? "done" : outcome) },
];

/** The filters of the address, as the request has them. Reads signals. */
function filters() {
  const { parameters } = address.value;
  const range = parameters.get("range");
  const ends = endsOf(range);
  return {
    client: parameters.get("client") ?? "",
    rpc: parameters.get("rpc") ?? "",
    ...(ends && { startTime: timestampFromMs(ends.start) }),
    // A range that leads to now stays open, for what comes.
    ...(ends && range?.includes("-") && { endTime: timestampFromMs(ends.end) }),
    pageSize: 200,
  };
}

/** What clients did or tried to do, the newest first. */
export function Audit() {
  const answer = useAnswer(async (signal) => {
    const asked = filters();
    return { asked, page: await auditLog.listAuditEntries(asked, { signal }) };
  });
  const { value, failure, again } = answer.value;
  const later = useLaterPages(value, value?.page.nextPageToken ?? "", async ({ asked }, pageToken) => {
    const page = await auditLog.listAuditEntries({ ...asked, pageToken });
    return { rows: page.entries, next: page.nextPageToken };
  });
  const rows = [...(value?.page.entries ?? []), ...later.rows];
  const opened = rows.find(({ id }) => id === address.value.parameters.get("open"));
  return (
    <Listing
      title="Audit log"
      total={value && Number(value.page.totalCount)}
      failure={failure}
      again={again}
      tools={<Filters rows={rows} again={again} />}
    >
      <Problem failure={later.failure} again={later.again} />
      {value && rows.length === 0 ? (
        <Empty title="No entry matches these filters.">
          <p>Every call that changes something leaves an entry, whether it was done or refused.</p>
        </Empty>
      ) : (
        <Table
          label="Audit log"
          rows={rows}
          columns={columns}
          rowKey={({ id }) => id}
          open={({ id }) => setParameters({ open: id })}
          more={() => void later.more()}
          total={Number(value?.page.totalCount ?? 0n)}
          tone={({ outcome }) => (outcome === "OK" ? "" : "warning")}
        />
      )}
      {opened && <Entry entry={opened} />}
    </Listing>
  );
}

function Filters({ rows, again }: { rows: readonly AuditEntry[]; again(): void }) {
  const known = useAnswer((signal) => clients.listApiClients({ pageSize: 1000 }, { signal }));
  const { parameters } = address.value;
  const chosen = parameters.get("client") ?? "";
  const offered = new Map(known.value.value?.apiClients.map(({ id, name }) => [id, name]));
  for (const { client } of rows) if (client && !offered.has(client.id)) offered.set(client.id, client.name);
  if (chosen !== "" && !offered.has(chosen)) offered.set(chosen, chosen);
  return (
    <>
      <select
        aria-label="Client"
        value={chosen}
        onChange={({ currentTarget }) => setParameters({ client: currentTarget.value })}
      >
        <option value="">All clients</option>
        {[...offered].map(([id, name]) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
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
      <button type="button" onClick={again}>
        Refresh
      </button>
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
      <dl class="facts">
        {facts
          .filter(([, value]) => value !== "" && value !== undefined)
          .map(([name, value]) => (
            <div key={name} class="fact">
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </Dialog>
  );
}
