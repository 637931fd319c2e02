import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { type AuditEntry, AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { address, hereWith, linkTo, setParameters } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { type Page, useList } from "../../data/list.ts";
import { type Column, textColumn } from "../../ui/column.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { ListScreen } from "../../ui/list-screen.tsx";
import { nameColumn } from "../../ui/name-column.tsx";
import { useNewest, WaitingRows } from "../../ui/newest.tsx";
import { ChoiceFilter } from "../../ui/text-filters.tsx";
import { nowMs, Time } from "../../ui/time.tsx";
import { momentsOf, TimeRangeChoice } from "../../ui/time-range.tsx";
import ui from "../../ui/ui.module.css";

const auditLog = clientOf(AuditLogService);
const clients = clientOf(ApiClientService);

const shortName = (rpc: string) => rpc.slice(rpc.lastIndexOf("/") + 1);

/** The operation in words: `Create user group`. */
function operationText(rpc: string): string {
  const words = shortName(rpc)
    .replace(/(?<=[a-z])(?=[A-Z])/g, " ")
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Turns an operation in words into its RPC name; leaves full names unchanged. */
const rpcNameOf = (words: string) =>
  words.includes("/")
    ? words.trim()
    : words
        .trim()
        .split(/\s+/)
        .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
        .join("");

/** The screens of resources, by their type; of events, see `hrefOf`. */
const places: Readonly<Record<string, readonly string[]>> = {
  rule: ["rules", "rules"],
  trigger: ["rules", "triggers"],
  destination: ["rules", "destinations"],
  delivery: ["deliveries"],
  maintenanceWindow: ["windows"],
  silence: ["silences"],
  apiClient: ["settings", "keys"],
  credential: ["settings", "credentials"],
  userAccount: ["settings", "accounts"],
  userGroup: ["settings", "groups"],
  customPropertyUpdater: ["settings", "properties"],
  metricEntry: ["settings", "dictionary", "metrics"],
  entityField: ["settings", "dictionary", "entities"],
  eventField: ["settings", "dictionary", "events"],
  event: ["events"],
};

/** Divides the resource of an entry: its type, its text, and the names or ids that it is about. */
function partsOf({ resource }: AuditEntry) {
  const [, type = "", text = ""] = /^([^/]*)\/(.*)$/s.exec(resource) ?? [];
  const [, several] = /^\d+ of \d+: (.*)$/s.exec(text) ?? [];
  const isList = several !== undefined || type === "event" || type === "maintenanceWindow";
  return { type, text, names: isList ? (several ?? text).split(",").filter((name) => name !== "") : [text] };
}

/** The resource of an entry in words. */
function resourceText(entry: AuditEntry): string {
  const { type, text } = partsOf(entry);
  const kind = type.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
  return `${kind} ${text}`.trim() || entry.resource;
}

const isDone = ({ outcome }: AuditEntry) => outcome === "OK";
const deletes = ({ rpc }: AuditEntry) => shortName(rpc).startsWith("Delete");

/** Returns the ids of the entries whose resource a later one of these, the newest first, has deleted. */
function goneSince(rows: readonly AuditEntry[]): ReadonlySet<string> {
  const last = new Map<string, boolean>();
  const gone = new Set<string>();
  for (const entry of rows) {
    const { type, names } = partsOf(entry);
    const keys = names.map((name) => `${type}/${name}`);
    if (keys.every((key) => last.get(key) === true)) gone.add(entry.id);
    if (isDone(entry)) for (const key of keys) if (!last.has(key)) last.set(key, deletes(entry));
  }
  return gone;
}

/** Returns the address of what an entry is about; undefined: no screen shows it, or the entry itself has deleted it. */
function hrefOf(entry: AuditEntry): string | undefined {
  const { type, names } = partsOf(entry);
  const [name = ""] = names;
  const path = isDone(entry) && name !== "" && !deletes(entry) ? places[type] : undefined;
  if (path === undefined) return undefined;
  if (type === "event") {
    const where = JSON.stringify({ in: { field: "id", values: names.slice(0, linkedMax) } });
    return linkTo(path, { where, status: "any" });
  }
  if (type === "delivery") return linkTo(path, { open: name });
  if (type === "silence") return linkTo(path, { id: name });
  return names.length === 1 ? linkTo([...path, name]) : linkTo(path);
}

/** The most events that an address names. */
const linkedMax = 50;

const columnsOf = (gone: ReadonlySet<string>): readonly Column<AuditEntry>[] => [
  {
    key: "time",
    label: "When",
    width: "100px",
    line: 1,
    sort: ({ time }) => time,
    cell: ({ time }) => <Time at={time} short />,
  },
  nameColumn(
    "What",
    "minmax(160px, 1.2fr)",
    ({ rpc }) => operationText(rpc),
    ({ rpc }) => rpc,
  ),
  {
    ...textColumn<AuditEntry>("resource", "To what", "minmax(160px, 2fr)", resourceText),
    cell: (entry) => {
      const href = gone.has(entry.id) ? undefined : hrefOf(entry);
      if (href === undefined) return resourceText(entry);
      return (
        <a href={href} tabIndex={-1}>
          {resourceText(entry)}
        </a>
      );
    },
  },
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

async function readPage(
  query: ReturnType<typeof filters>,
  pageToken = "",
  options: { signal?: AbortSignal } = {},
): Promise<Page<AuditEntry>> {
  const page = await auditLog.listAuditEntries({ ...query, pageToken }, options);
  return { rows: page.entries, next: page.nextPageToken, total: Number(page.totalCount) };
}

/** Lists the actions and attempts of clients, the newest first. */
export function Audit() {
  const reading = useSignal(false);
  const { list, waiting } = useNewest({
    list: useList(filters, readPage),
    read: readPage,
    keyOf: ({ id }) => id,
    timeOf: ({ time }) => time,
    beat: String(nowMs.value),
    reading,
  });
  const opened = useOpened(list.rows);
  const columns = useMemo(() => columnsOf(goneSince(list.rows)), [list.rows]);
  return (
    <ListScreen
      title="Audit log"
      list={list}
      tools={<Filters rows={list.rows} />}
      above={<WaitingRows count={waiting} reading={reading} />}
      reading={reading}
      none="Nothing was changed yet."
      noMatch="No entry matches these filters."
      about={<p>Every call that changes something leaves an entry, whether it was done or refused.</p>}
      columns={columns}
      rowKey={({ id }) => id}
      hrefOf={({ id, time }) => hereWith({ open: id, at: time && String(timestampMs(time)) })}
      tone={({ outcome }) => (outcome === "OK" ? "" : "warning")}
    >
      {opened === null && (
        <Dialog title="Entry of the audit log" close={close}>
          <p>This entry is not stored any more.</p>
        </Dialog>
      )}
      {opened && <Entry entry={opened} />}
    </ListScreen>
  );
}

const close = () => setParameters({ open: undefined, at: undefined });

/** The entry that the address opens, wherever in the list it is: undefined if none, null if it is not stored. */
function useOpened(rows: readonly AuditEntry[]): AuditEntry | null | undefined {
  const { parameters } = address.value;
  const id = parameters.get("open");
  const listed = rows.find((row) => row.id === id);
  const answer = useAnswer(async (signal) => {
    const at = Number(address.value.parameters.get("at"));
    const wanted = address.value.parameters.get("open");
    if (wanted === null || !(at > 0)) return undefined;
    // By its moment: what else happened then comes along.
    const within = { startTime: timestampFromMs(at), endTime: timestampFromMs(at + 1), pageSize: 1000 };
    const { entries } = await auditLog.listAuditEntries(within, { signal });
    return { id: wanted, entry: entries.find((each) => each.id === wanted) ?? null };
  });
  if (id === null || listed !== undefined) return listed;
  const found = answer.value.value;
  return found?.id === id ? found.entry : undefined;
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
        value={operationText(parameters.get("rpc") ?? "")}
        onChange={({ currentTarget }) => setParameters({ rpc: rpcNameOf(currentTarget.value) })}
      />
      <datalist id="audit-operations">
        {[...new Set(rows.map(({ rpc }) => operationText(rpc)))].sort().map((words) => (
          <option key={words} value={words} />
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
  const { rpc, client, outcome, requestId, keyPrefix, session, time } = entry;
  const [text, href] = [resourceText(entry), hrefOf(entry)];
  const facts = [
    ["When", <Time key="time" at={time} />],
    ["Operation", rpc],
    ["To what", href === undefined ? text : <a href={href}>{text}</a>],
    ["Client", client && `${client.name} (${client.id})`],
    ["Outcome", outcome],
    ["Key", keyPrefix],
    ["Session of the console", session],
    ["Request", requestId],
  ] as const;
  return (
    <Dialog title={operationText(rpc)} close={close}>
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
