import { address } from "../../data/address.ts";
import { DestinationList } from "./list.tsx";
import { NewDestination } from "./new.tsx";
import { OneDestination } from "./one.tsx";

/** Destinations of the tenant: all of them, one, or the form of a new one. */
export function Destinations() {
  const name = address.value.path[2];
  if (name) return <OneDestination key={name} name={name} />;
  return address.value.parameters.has("new") ? <NewDestination /> : <DestinationList />;
}
