import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { after, type Calls, hisOwn, notFound, nothing, type World } from "../support/calls.ts";

const secrets = (mark: string) => ({ token: mark });
const info = (mark: string) => ({ name: mark, type: "teamChat", description: mark, tags: [mark] });

/** A credential that is there; its id. */
async function credential({ client, mark }: World): Promise<string> {
  const made = await client(CredentialService).createCredential({ info: info(mark), secrets: secrets(mark) });
  return made.info?.id ?? "";
}

export const calls: Calls = {
  "CredentialService/CreateCredential": hisOwn(({ mark }) => ({ info: info(mark), secrets: secrets(mark) })),
  "CredentialService/ListCredentials": nothing(after(credential)),
  "CredentialService/ReplaceCredential": notFound(
    after(credential, (id, world) => ({ id, info: info(world.mark), secrets: secrets(world.mark) })),
  ),
  "CredentialService/DeleteCredential": notFound(after(credential, (id) => ({ id }))),
};
