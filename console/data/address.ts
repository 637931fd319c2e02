import { computed, type ReadonlySignal, signal } from "@preact/signals";

/** Where the page is: the fragment of its address, `#/<screen>/<thing>?<parameters>`, so that no server's log holds it. */
interface Address {
  readonly path: readonly string[];
  readonly parameters: URLSearchParams;
}

function read(): Address {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s, 2);
  return { path: path.split("/").map(decoded), parameters: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const address = signal<Address>({ path: [""], parameters: new URLSearchParams() });

/** Address that the page showed before this one; empty until it has shown two. */
let addressBefore = "";

/** Follows the browser's address. Called once, at the start. */
export function startAddress(): void {
  addEventListener("hashchange", () => {
    addressBefore = hereWith({});
    address.value = read();
  });
  address.value = read();
}

/**
 * Tells whether going back in the browser's history leads to this address, because a link on it has led here. Asked while the page is
 * drawn first, and remembered with this entry of the history.
 */
export function isBack(to: string): boolean {
  const state = history.state as { backTo?: string } | null;
  const backTo = state?.backTo ?? addressBefore;
  if (state?.backTo === undefined) history.replaceState({ ...state, backTo }, "", location.hash || undefined);
  return backTo === to;
}

/** The first screen is that of events. */
export const screenName = computed(() => address.value.path[0] || "events");

const followed = new Map<string, ReadonlySignal<string | null>>();

/** Reads one parameter. A change of other parameters does not run or draw the reader again. */
export function parameterOf(name: string): string | null {
  let known = followed.get(name);
  if (known === undefined) {
    known = computed(() => address.value.parameters.get(name));
    followed.set(name, known);
  }
  return known.value;
}

/** The link to a screen or a thing. */
export function linkTo(path: readonly string[], parameters: Record<string, string> | URLSearchParams = {}): string {
  const query = new URLSearchParams(parameters).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${query === "" ? "" : `?${query}`}`;
}

/** The link to this address with other parameters; undefined and empty ones are removed. */
export function hereWith(changes: Record<string, string | undefined>): string {
  const parameters = new URLSearchParams(address.value.parameters);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") parameters.delete(name);
    else parameters.set(name, value);
  }
  return linkTo(address.value.path, parameters);
}

/** Changes parameters of this address, as in `hereWith`. Without `asStep`, going back skips what was before. */
export function setParameters(changes: Record<string, string | undefined>, asStep = true): void {
  const hash = hereWith(changes);
  if (hash === location.hash) return;
  if (asStep) history.pushState(null, "", hash);
  else history.replaceState(history.state, "", hash);
  address.value = read();
}

/** Goes to another address in place of this one, which going back skips then. */
export function goInstead(hash: string): void {
  history.replaceState(history.state, "", hash);
  address.value = read();
}

export function goTo(hash: string): void {
  location.hash = hash;
}

/** A parameter's values. */
export const listOf = (name: string): string[] => listIn(parameterOf(name) ?? "");

/** The values of a list in a text, which are separated by commas. */
export const listIn = (text: string): string[] => (text === "" ? [] : text.split(",").map(decoded));

/** The text of a list. */
export const listText = (values: readonly string[]) =>
  values.map((value) => value.replace(/[%,]/g, encodeURIComponent)).join(",");
