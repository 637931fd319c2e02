import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import type { Calls, World } from "../support/calls.ts";

const secrets = (mark: string) => ({ token: mark });
const info = (mark: string) => ({ name: mark, type: "teamChat", description: mark, tags: [mark] });

/** A credential that is there; its id. */
async function credential({ client, mark }: World): Promise<string> {
  const made = await client(CredentialService).createCredential({ info: info(mark), secrets: secrets(mark) });
  return made.info?.id ?? "";
}

export const calls: Calls = {
  "CredentialService/CreateCredential": {
    request: ({ mark }) => ({ info: info(mark), secrets: secrets(mark) }),
    elsewhere: "his own",
  },
  "CredentialService/ListCredentials": {
    request: async (world) => {
      await credential(world);
      return {};
    },
    elsewhere: "nothing",
  },
  "CredentialService/ReplaceCredential": {
    request: async (world) => ({ id: await credential(world), info: info(world.mark), secrets: secrets(world.mark) }),
    elsewhere: "not found",
  },
  "CredentialService/DeleteCredential": {
    request: async (world) => ({ id: await credential(world) }),
    elsewhere: "not found",
  },
};
