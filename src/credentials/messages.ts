import { create } from "@bufbuild/protobuf";
import { type Credential, CredentialSchema } from "#gen/belfry/credentials/v1/credential_pb.ts";
import type { CredentialRow } from "./credentials.ts";

/** A credential as the API shows it: without secrets, with both kinds of uses, also when there are none. */
export function toCredential({ id, collections, destinations, ...info }: CredentialRow): Credential {
  return create(CredentialSchema, {
    id,
    info: { ...info, usedBy: { collections: { ids: collections }, destinations: { ids: destinations } } },
  });
}
