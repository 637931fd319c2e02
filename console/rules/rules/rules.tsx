import { address } from "../../data/address.ts";
import { RuleList } from "./list.tsx";
import { NewRule } from "./new.tsx";
import { OneRule } from "./one.tsx";

/** Rules of the tenant: all of them, one, or the form of a new one, which may be a copy. */
export function Rules() {
  const name = address.value.path[2];
  if (name) return <OneRule key={name} name={name} />;
  const copied = address.value.parameters.get("copy") ?? "";
  if (address.value.parameters.has("new") || copied) return <NewRule key={copied} copied={copied} />;
  return <RuleList />;
}
