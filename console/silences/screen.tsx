import { address } from "../data/address.ts";
import { NewSilence } from "./form.tsx";
import { SilenceList } from "./list.tsx";

/** Silences: by their state, one of them, or the form of a new one. */
export function SilencesScreen() {
  return address.value.path[1] === "new" ? <NewSilence /> : <SilenceList />;
}
