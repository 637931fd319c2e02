import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import type { ApiClient, ApiKey } from "#gen/belfry/tenants/v1/api_client_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { may, session } from "../../data/session.ts";
import { AskFirst } from "../../ui/ask-first.tsx";
import { One } from "../../ui/one.tsx";
import { ShownOnce } from "../../ui/shown-once.tsx";
import { nowMs, Time } from "../../ui/time.tsx";
import ui from "../../ui/ui.module.css";
import settingsLook from "../settings.module.css";
import { NewKey } from "./new-key.tsx";
import { purposeOf } from "./purposes.ts";

const clients = clientOf(ApiClientService);

/** One client: what its keys may do, its keys, and a new one. */
export function OneClient({ id }: { id: string }) {
  const read = async (signal: AbortSignal) => {
    const [client, keys] = await Promise.all([
      clients.getApiClient({ id }, { signal }),
      clients.listApiKeys({ clientId: id }, { signal }),
    ]);
    return { client: client.apiClient, keys: keys.keys };
  };
  const answer = useAnswer(read, undefined, "client");
  const { value, failure, again } = answer.value;
  const client = value?.client;
  // Here alone: no draft and no storage ever holds it.
  const secret = useSignal<string | undefined>(undefined);
  return (
    <One
      title={client?.name ?? "Client"}
      of="clients"
      failure={failure}
      again={again}
      tools={client && <Remove client={client} keys={value.keys} />}
    >
      {client && (
        <p>
          {purposeOf(client)}.{" "}
          {may(AuditLogService.method.listAuditEntries) && (
            <a href={linkTo(["settings", "audit"], { client: client.id })}>What it did</a>
          )}
        </p>
      )}
      {secret.value !== undefined && (
        <ShownOnce
          label="The new key"
          secret={secret.value}
          done={() => {
            secret.value = undefined;
          }}
        />
      )}
      {client && <KeyTable client={client} keys={value.keys} again={again} />}
      {client && may(ApiClientService.method.createApiKey) && (
        <NewKey
          clientId={client.id}
          made={(made) => {
            secret.value = made;
            again();
          }}
        />
      )}
    </One>
  );
}

const isOwn = (key: ApiKey) => key.prefix === session.value?.keyPrefix;
const hasExpired = ({ expireTime }: ApiKey) => expireTime !== undefined && timestampMs(expireTime) <= nowMs.value;

function KeyTable({ client, keys, again }: { client: ApiClient; keys: readonly ApiKey[]; again(): void }) {
  if (keys.length === 0) return <p class={ui.quiet}>It has no key yet: nothing can call with it.</p>;
  return (
    <table class={settingsLook.plainTable}>
      <caption>Keys</caption>
      <thead>
        <tr>
          <th scope="col">Begins with</th>
          <th scope="col">For</th>
          <th scope="col">Life</th>
          <th scope="col">
            <span class={ui.unseen}>What can be done</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <tr key={key.id}>
            <td>
              <code>{key.prefix}</code>
              {isOwn(key) && " (this session's)"}
            </td>
            <td>{key.description}</td>
            <td>
              made <Time at={key.createTime} short />, last used{" "}
              {key.lastUsedTime ? <Time at={key.lastUsedTime} short /> : "never"}, {hasExpired(key) ? "ended" : "ends"}{" "}
              {key.expireTime ? <Time at={key.expireTime} short /> : "never"}
            </td>
            <td>
              {may(ApiClientService.method.deleteApiKey) && <Revoke client={client} apiKey={key} again={again} />}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Revoke({ client, apiKey, again }: { client: ApiClient; apiKey: ApiKey; again(): void }) {
  return (
    <AskFirst
      action="Revoke"
      question={`Revoke the key ${apiKey.prefix}?`}
      act={async () => {
        await clients.deleteApiKey({ clientId: client.id, keyId: apiKey.id });
        say(`The key ${apiKey.prefix} is revoked.`);
        again();
      }}
    >
      <p>What calls with it is refused within a second. It cannot be taken back.</p>
      {apiKey.lastUsedTime && (
        <p>
          It was last used <Time at={apiKey.lastUsedTime} short />.
        </p>
      )}
      {isOwn(apiKey) && <p>It is the key of this session: you will be logged out.</p>}
    </AskFirst>
  );
}

function Remove({ client, keys }: { client: ApiClient; keys: readonly ApiKey[] }) {
  if (!may(ApiClientService.method.deleteApiClient)) return null;
  return (
    <AskFirst
      action="Delete"
      question={`Delete the client "${client.name}"?`}
      act={async () => {
        await clients.deleteApiClient({ id: client.id });
        say(`The client "${client.name}" is deleted.`);
        goTo(linkTo(["settings", "keys"]));
      }}
    >
      <p>
        {keys.length === 0
          ? "It has no keys."
          : `Its keys (${keys.length}) are revoked: what calls with them is refused.`}
      </p>
      {keys.some(isOwn) && <p>One of them is the key of this session: you will be logged out.</p>}
    </AskFirst>
  );
}
