import { create } from "@bufbuild/protobuf";
import { type ApiClient, ApiClientSchema, ApiClientType } from "#gen/belfry/tenants/v1/api_client_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { address, goTo, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { useLaterPages } from "../../data/later-pages.ts";
import { may } from "../../data/session.ts";
import { ChoiceField, TextField } from "../../form/fields.tsx";
import { useForm } from "../../form/form.ts";
import { FormEnd } from "../../form/outcome.tsx";
import { say } from "../../frame/notice.tsx";
import { Empty, Problem } from "../../ui/problem.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { Listing, One, passesFilter } from "../listing.tsx";
import { OneClient } from "./client.tsx";
import { purposeOf, roleChoices, typeChoices } from "./purposes.ts";

const clients = clientOf(ApiClientService);

const columns: readonly Column<ApiClient>[] = [
  {
    key: "name",
    label: "Client",
    width: "minmax(140px, 1.5fr)",
    line: 1,
    cell: ({ name }) => <strong>{name}</strong>,
    title: ({ name }) => name,
  },
  { key: "purpose", label: "May", width: "minmax(180px, 2fr)", line: 2, cell: purposeOf, title: purposeOf },
  {
    key: "made",
    label: "Made",
    width: "100px",
    line: 1,
    end: true,
    cell: ({ createTime }) => <Time at={createTime} short />,
  },
];

/** The API clients, whose keys programs and this console call with: all of them, one with its keys, or a new one. */
export function Keys() {
  const id = address.value.path[2];
  if (address.value.parameters.has("new")) return <NewClient />;
  return id === undefined || id === "" ? <AllClients /> : <OneClient key={id} id={id} />;
}

function AllClients() {
  const answer = useAnswer((signal) => clients.listApiClients({ pageSize: 1000 }, { signal }));
  const { value, failure, again } = answer.value;
  const later = useLaterPages(value, value?.nextPageToken ?? "", async (_first, pageToken) => {
    const page = await clients.listApiClients({ pageSize: 1000, pageToken });
    return { rows: page.apiClients, next: page.nextPageToken };
  });
  const all = [...(value?.apiClients ?? []), ...later.rows];
  const rows = all.filter((client) => passesFilter(client.name, purposeOf(client)));
  return (
    <Listing
      title="Keys"
      total={value && Number(value.totalCount)}
      failure={failure}
      again={again}
      filter="Search by name"
      make={may(ApiClientService.method.createApiClient) && "New client"}
    >
      <Problem failure={later.failure} again={later.again} />
      <p class="pad quiet">
        A key belongs to a client, which says what its keys may do. Open a client to see its keys.
      </p>
      {value && rows.length === 0 ? (
        <Empty title="No client matches." />
      ) : (
        <Table
          label="API clients"
          rows={rows}
          columns={columns}
          rowKey={({ id }) => id}
          open={({ id }) => goTo(linkTo(["settings", "keys", id]))}
          more={() => void later.more()}
          total={rows.length < all.length ? rows.length : Number(value?.totalCount ?? 0n)}
        />
      )}
    </Listing>
  );
}

function NewClient() {
  const form = useForm(ApiClientSchema, {
    key: "client/new",
    stored: create(ApiClientSchema, { type: ApiClientType.USER, role: "user" }),
    prefix: "apiClient",
    send: async (apiClient) => (await clients.createApiClient({ apiClient })).apiClient,
    done({ id, name }) {
      say(`The client "${name}" is made. It needs a key.`, () => clients.deleteApiClient({ id }));
      goTo(linkTo(["settings", "keys", id]));
    },
  });
  const { name, type, role } = form.value;
  return (
    <One title="New client" of="clients">
      <form class="form" onSubmit={form.submit} aria-label="Client">
        <TextField
          form={form}
          path="name"
          label="Name"
          required
          value={name}
          set={(next) => form.change({ name: next })}
          help="Shown to people and in the audit log. It cannot be changed later."
        />
        <ChoiceField
          form={form}
          path="type"
          label="Purpose"
          value={String(type)}
          choices={typeChoices}
          set={(next) => {
            const chosen = Number(next) as ApiClientType;
            form.change({ type: chosen, role: chosen === ApiClientType.USER ? role || "user" : "" });
          }}
        />
        {type === ApiClientType.USER && (
          <ChoiceField
            form={form}
            path="role"
            label="Role"
            value={role}
            choices={roleChoices}
            set={(next) => form.change({ role: next })}
          />
        )}
        <FormEnd form={form} schema={ApiClientSchema} send="Make the client" />
      </form>
    </One>
  );
}
