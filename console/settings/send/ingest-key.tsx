import { useSignal } from "@preact/signals";
import { ApiClientType } from "#gen/belfry/tenants/v1/api_client_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { linkTo } from "../../data/address.ts";
import { clientOf, type Failure, failureOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { may } from "../../data/session.ts";
import { Problem } from "../../ui/problem.tsx";
import { ShownOnce } from "../../ui/shown-once.tsx";
import ui from "../../ui/ui.module.css";

const clients = clientOf(ApiClientService);

/** The client of this name that may only send, which is made when there is none. */
async function ingestClient(name: string): Promise<string> {
  let pageToken = "";
  do {
    const page = await clients.listApiClients({ pageSize: 1000, pageToken });
    const found = page.apiClients.find((each) => each.name === name && each.type === ApiClientType.DATA_INGEST);
    if (found !== undefined) return found.id;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  const { apiClient } = await clients.createApiClient({ apiClient: { name, type: ApiClientType.DATA_INGEST } });
  return apiClient?.id ?? "";
}

/** Makes a key that may only send. It is kept in the page's memory until the page is left, and nowhere else. */
export function IngestKey({ secret, made }: { secret: string; made(secret: string): void }) {
  const name = useSignal("agents");
  const busy = useSignal(false);
  const failure = useSignal<Failure | undefined>(undefined);
  const make = async (event: Event) => {
    event.preventDefault();
    busy.value = true;
    failure.value = undefined;
    try {
      const clientId = await ingestClient(name.value.trim());
      const answer = await clients.createApiKey({ clientId, key: { description: "made on the page Send data" } });
      made(answer.secret);
      say(`A key of "${name.value.trim()}" was made.`, async () => {
        await clients.deleteApiKey({ clientId, keyId: answer.key?.id ?? "" });
        made("");
      });
    } catch (error) {
      failure.value = failureOf(error);
    }
    busy.value = false;
  };
  if (!may(ApiClientService.method.createApiKey)) {
    return (
      <p>
        Your key may not make other keys. Ask somebody with a manager's key for one of a client of type DATA_INGEST, and
        put it in the place of <code>bf_…</code> below.
      </p>
    );
  }
  return (
    <>
      <p>
        A key of type DATA_INGEST may send data and do nothing else. <a href={linkTo(["settings", "keys"])}>Keys</a>{" "}
        lists all, and revokes them.
      </p>
      {secret === "" ? (
        <form class={ui.inline} onSubmit={make} aria-label="Make a key">
          <label class={ui.inline}>
            Name
            <input
              required
              maxLength={255}
              value={name.value}
              onInput={({ currentTarget }) => {
                name.value = currentTarget.value;
              }}
            />
          </label>
          <button type="submit" class={ui.primary} disabled={busy.value}>
            {busy.value ? "Making…" : "Make a key"}
          </button>
        </form>
      ) : (
        <>
          <ShownOnce label="The key" secret={secret} done={() => made("")} />
          <p class={ui.hint}>It is in the lines below, until you leave this page or say that you have it.</p>
        </>
      )}
      <Problem failure={failure.value} />
    </>
  );
}
