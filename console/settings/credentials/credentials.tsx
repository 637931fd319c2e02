import { address } from "../../data/address.ts";
import { CredentialList } from "./list.tsx";
import { NewCredential } from "./new.tsx";
import { OneCredential } from "./one.tsx";

/** Credentials of the tenant: all of them, one, or the form of a new one. */
export function Credentials() {
  const id = address.value.path[2];
  if (id) return <OneCredential key={id} id={id} />;
  const type = address.value.parameters.get("new");
  return type === null ? <CredentialList /> : <NewCredential key={type} type={type} />;
}
