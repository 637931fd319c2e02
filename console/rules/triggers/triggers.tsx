import { address } from "../../data/address.ts";
import { TriggerList } from "./list.tsx";
import { NewTrigger } from "./new.tsx";
import { OneTrigger } from "./one.tsx";

/** Triggers of the tenant: the list, one of them, or a new one. */
export function Triggers() {
  const name = address.value.path[2] ?? "";
  if (name !== "") return <OneTrigger key={name} name={name} />;
  const { parameters } = address.value;
  if (!parameters.has("new")) return <TriggerList />;
  const copied = parameters.get("copy") ?? "";
  return <NewTrigger key={copied} copied={copied} />;
}
