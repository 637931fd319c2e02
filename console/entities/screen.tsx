import { address } from "../data/address.ts";
import { OneEntity } from "./entity.tsx";
import { EntitySearch } from "./search.tsx";

/** All entities, or the one that the address names. */
export function EntitiesScreen() {
  const id = address.value.path[1];
  return id === undefined || id === "" ? <EntitySearch /> : <OneEntity key={id} id={id} />;
}
