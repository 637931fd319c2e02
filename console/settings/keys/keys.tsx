import { create } from "@bufbuild/protobuf";
import { type ApiClient, ApiClientSchema, ApiClientType } from "#gen/belfry/tenants/v1/api_client_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { address, goTo, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { useList } from "../../data/list.ts";
import { say } from "../../data/notice.ts";
import { may } from "../../data/session.ts";
import { ChoiceField, TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import { useForm } from "../../form/form.ts";
import { FormEnd } from "../../form/outcome.tsx";
import { type Column, textColumn } from "../../ui/column.ts";
import { ListScreen } from "../../ui/list-screen.tsx";
import { nameColumn } from "../../ui/name-column.tsx";
import { One } from "../../ui/one.tsx";
import { passesFilter } from "../../ui/text-filters.tsx";
import { Time } from "../../ui/time.tsx";
import ui from "../../ui/ui.module.css";
import { OneClient } from "./client.tsx";
import { purposeOf, roleChoices, typeChoices } from "./purposes.ts";

const clients = clientOf(ApiClientService);

const columns: readonly Column<ApiClient>[] = [
  nameColumn("Client", "minmax(140px, 1.5fr)", ({ name }) => name),
  textColumn("purpose", "Permissions", "minmax(180px, 2fr)", purposeOf),
  {
    key: "made",
    label: "Made",
    width: "100px",
    line: 1,
    end: true,
    sort: ({ createTime }) => createTime,
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
  const list = useList(
    () => ({ pageSize: 1000 }),
    async (query, pageToken, options) => {
      const page = await clients.listApiClients({ ...query, pageToken }, options);
      return { rows: page.apiClients, next: page.nextPageToken, total: Number(page.totalCount) };
    },
  );
  return (
    <ListScreen
      title="Keys"
      list={list}
      filter="Search by name"
      passes={(client) => passesFilter(client.name, purposeOf(client))}
      make={may(ApiClientService.method.createApiClient) && ["New client", linkTo(["settings", "keys"], { new: "1" })]}
      none="There are no clients yet."
      noMatch="No client matches."
      above={
        <p class={`${ui.pad} ${ui.quiet}`}>
          A key belongs to a client, which says what its keys may do. Open a client to see its keys.
        </p>
      }
      label="API clients"
      columns={columns}
      rowKey={({ id }) => id}
      hrefOf={({ id }) => linkTo(["settings", "keys", id])}
    />
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
      <form class={formLook.form} onSubmit={form.submit} aria-label="Client">
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
