import type { Credential, CredentialInfo } from "#gen/belfry/credentials/v1/credential_pb.ts";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { useOne } from "../../data/one.ts";
import { may } from "../../data/session.ts";
import { AskFirst } from "../../ui/ask-first.tsx";
import { Problem } from "../../ui/problem.tsx";
import { ScreenHead } from "../../ui/screen-head.tsx";
import { Trouble } from "../../ui/trouble.tsx";
import ui from "../../ui/ui.module.css";
import { typeWord } from "./credential-types.ts";
import { CredentialForm } from "./form.tsx";

const credentials = clientOf(CredentialService);

/** The API lists credentials and gets no single one. */
async function readCredential(id: string, signal: AbortSignal): Promise<Credential | null> {
  let pageToken = "";
  do {
    const page = await credentials.listCredentials({ pageSize: 1000, pageToken }, { signal });
    const found = page.credentials.find((each) => each.id === id);
    if (found !== undefined) return found;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return null;
}

/** One credential: what uses it, and its form. */
export function OneCredential({ id }: { id: string }) {
  const answer = useOne("credential", (signal) => readCredential(id, signal));
  const { value, failure, again } = answer.value;
  const info = value?.info;
  return (
    <>
      <ScreenHead
        title={info?.name ?? "Credential"}
        above={["Credentials", linkTo(["settings", "credentials"])]}
        tools={
          value &&
          info &&
          may(CredentialService.method.deleteCredential) && (
            <AskFirst
              action="Delete"
              question={`Delete the credential "${info.name}"?`}
              look={again}
              act={async () => {
                await credentials.deleteCredential({ id });
                goTo(linkTo(["settings", "credentials"]));
                say(`Credential "${info.name}" was deleted.`);
              }}
            >
              {isUsed(info) && <p>What uses it has to give it up first:</p>}
              <Users info={info} />
              <p>Its secrets go with it, so this cannot be taken back.</p>
            </AskFirst>
          )
        }
      />
      <Problem failure={failure} again={again} />
      <Trouble text={info?.trouble ?? ""} />
      {value === null && <p class={ui.pad}>There is no such credential. It may have been deleted.</p>}
      {value && info && (
        <div class={`${ui.scroll} ${ui.formPage}`}>
          <section class={ui.card} aria-labelledby="users">
            <h2 id="users">Used by</h2>
            <Users info={info} />
            <p class={ui.hint}>
              {typeWord(info.type)} · id <code>{id}</code>
            </p>
          </section>
          <CredentialForm stored={value} onSaved={again} />
        </div>
      )}
    </>
  );
}

const isUsed = ({ usedBy }: CredentialInfo) =>
  (usedBy?.destinations?.ids.length ?? 0) + (usedBy?.collections?.ids.length ?? 0) > 0;

const namesMax = 50;

/** Lists the users of a credential, each destination with a link. */
function Users({ info }: { info: CredentialInfo }) {
  const names = info.usedBy?.destinations?.ids ?? [];
  const collections = info.usedBy?.collections?.ids ?? [];
  if (!isUsed(info)) return <p class={ui.quiet}>Nothing uses it.</p>;
  return (
    <ul class={ui.links} aria-label="What uses it">
      {names.slice(0, namesMax).map((name) => (
        <li key={name}>
          Destination <a href={linkTo(["rules", "destinations", name])}>{name}</a>
        </li>
      ))}
      {collections.slice(0, namesMax).map((name) => (
        <li key={name}>Collection {name}</li>
      ))}
      {names.length + collections.length > namesMax && (
        <li class={ui.quiet}>
          {(names.length + collections.length).toLocaleString("en")} in all, of which the first are shown
        </li>
      )}
    </ul>
  );
}
