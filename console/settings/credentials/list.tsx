import type { Credential } from "#gen/belfry/credentials/v1/credential_pb.ts";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { useLaterPages } from "../../data/later-pages.ts";
import { may } from "../../data/session.ts";
import { Empty, Problem } from "../../ui/problem.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { typeWord } from "./credential-types.ts";

const credentials = clientOf(CredentialService);

const users = ({ info }: Credential) =>
  [...(info?.usedBy?.destinations?.ids ?? []), ...(info?.usedBy?.collections?.ids ?? [])].join(", ");

const hosts = ({ info }: Credential) =>
  (info && info.allowedHosts.length > 0 ? info.allowedHosts : (info?.boundHosts ?? [])).join(", ");

const columns: readonly Column<Credential>[] = [
  {
    key: "name",
    label: "Name",
    width: "minmax(140px, 1.2fr)",
    line: 1,
    cell: ({ info }) => <strong>{info?.name}</strong>,
    title: ({ info }) => info?.name ?? "",
  },
  { key: "type", label: "Kind", width: "minmax(130px, 1fr)", cell: ({ info }) => typeWord(info?.type ?? "") },
  {
    key: "users",
    label: "Used by",
    width: "minmax(140px, 1.5fr)",
    cell: (credential) => users(credential) || <span class="quiet">nothing</span>,
    title: users,
  },
  {
    key: "hosts",
    line: 0,
    label: "May be sent to",
    width: "minmax(120px, 1fr)",
    cell: (credential) => hosts(credential) || <span class="quiet">the first user's host</span>,
    title: hosts,
  },
  {
    key: "description",
    line: 0,
    label: "Description",
    width: "minmax(120px, 1.5fr)",
    cell: ({ info }) => info?.description,
    title: ({ info }) => info?.description ?? "",
  },
];

const pageSize = 200;

export function CredentialList() {
  const answer = useAnswer((signal) => credentials.listCredentials({ pageSize }, { signal }));
  const { value, loading, failure, again } = answer.value;
  const later = useLaterPages(value, value?.nextPageToken ?? "", async (_first, pageToken) => {
    const page = await credentials.listCredentials({ pageSize, pageToken });
    return { rows: page.credentials, next: page.nextPageToken };
  });
  const rows = [...(value?.credentials ?? []), ...later.rows];
  const total = Number(value?.totalCount ?? 0n);
  return (
    <>
      <div class="screen-head">
        <h1>Credentials</h1>
        <p class="count" role="status">
          {loading ? "Loading…" : value && `${total.toLocaleString("en")} in all`}
        </p>
        <div class="tools">
          {may(CredentialService.method.createCredential) && (
            <a class="button" href={linkTo(["settings", "credentials"], { new: "usernamePassword" })}>
              New credential
            </a>
          )}
        </div>
      </div>
      <Problem failure={failure} again={again} />
      <Problem failure={later.failure} again={later.again} />
      {rows.length === 0 && value && (
        <Empty title="There are no credentials yet.">
          <p>
            A credential is a secret of another system, such as a chat's token, that many destinations share. It is kept
            encrypted, changed in one place, and never shown again.
          </p>
        </Empty>
      )}
      {rows.length > 0 && (
        <Table
          label="Credentials"
          rows={rows}
          columns={columns}
          rowKey={({ id }) => id}
          open={({ id }) => goTo(linkTo(["settings", "credentials", id]))}
          total={total}
          more={() => void later.more()}
        />
      )}
    </>
  );
}
