import type { Credential } from "#gen/belfry/credentials/v1/credential_pb.ts";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { useList } from "../../data/list.ts";
import { may } from "../../data/session.ts";
import { type Column, textColumn } from "../../ui/column.ts";
import { ListScreen } from "../../ui/list-screen.tsx";
import { nameColumn } from "../../ui/name-column.tsx";
import ui from "../../ui/ui.module.css";
import { typeWord } from "./credential-types.ts";

const credentials = clientOf(CredentialService);

const users = ({ info }: Credential) =>
  [...(info?.usedBy?.destinations?.ids ?? []), ...(info?.usedBy?.collections?.ids ?? [])].join(", ");

const hosts = ({ info }: Credential) =>
  (info && info.allowedHosts.length > 0 ? info.allowedHosts : (info?.boundHosts ?? [])).join(", ");

const columns: readonly Column<Credential>[] = [
  nameColumn("Name", "minmax(140px, 1.2fr)", ({ info }) => info?.name ?? ""),
  textColumn("type", "Kind", "minmax(130px, 1fr)", ({ info }) => typeWord(info?.type ?? "")),
  {
    key: "users",
    label: "Used by",
    width: "minmax(140px, 1.5fr)",
    cell: (credential) => users(credential) || <span class={ui.quiet}>nothing</span>,
    title: users,
  },
  {
    key: "hosts",
    line: 0,
    label: "May be sent to",
    width: "minmax(120px, 1fr)",
    cell: (credential) => hosts(credential) || <span class={ui.quiet}>the first user's host</span>,
    title: hosts,
  },
  textColumn("description", "Description", "minmax(120px, 1.5fr)", ({ info }) => info?.description ?? "", { line: 0 }),
];

const pageSize = 200;

export function CredentialList() {
  const list = useList(
    () => ({ pageSize }),
    async (query, pageToken, options) => {
      const page = await credentials.listCredentials({ ...query, pageToken }, options);
      return { rows: page.credentials, next: page.nextPageToken, total: Number(page.totalCount) };
    },
  );
  return (
    <ListScreen
      title="Credentials"
      list={list}
      make={
        may(CredentialService.method.createCredential) && [
          "New credential",
          linkTo(["settings", "credentials"], { new: "usernamePassword" }),
        ]
      }
      none="There are no credentials yet."
      about={
        <p>
          A credential is a secret of another system, such as a chat's token, that many destinations share. It is kept
          encrypted, changed in one place, and never shown again.
        </p>
      }
      columns={columns}
      rowKey={({ id }) => id}
      hrefOf={({ id }) => linkTo(["settings", "credentials", id])}
    />
  );
}
