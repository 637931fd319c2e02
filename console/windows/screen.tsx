import { address } from "../data/address.ts";
import { WindowList } from "./list.tsx";
import { ChangedWindow, NewWindow } from "./open-form.tsx";
import { OneWindow } from "./window.tsx";

/** Maintenance windows: all of them, one, or the form of one. */
export function WindowsScreen() {
  const { path, parameters } = address.value;
  const id = path[1] ?? "";
  if (id === "") return <WindowList />;
  if (id === "new") return <NewWindow />;
  return parameters.has("edit") ? <ChangedWindow key={id} id={id} /> : <OneWindow key={id} id={id} />;
}
