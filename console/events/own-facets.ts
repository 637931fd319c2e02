import { address, listIn, listOf, listText, setParameters } from "../data/address.ts";
import { preference } from "../data/preferences.ts";

/** The parameter of the address: a view that is shared brings its facets along. */
const parameter = "facets";
const kept = preference<string>("facets", "");

/** Most labels that have a facet: each costs a count of its own. */
export const ownFacetsMax = 8;

/** The labels that have a facet: those of this browser, and of the view that is open. Reads signals. */
export function ownFacets(): string[] {
  const inView = listOf(parameter);
  return [...new Set([...listIn(kept.value), ...inView])].slice(0, ownFacetsMax);
}

/** Gives labels a facet, and no other ones, in this browser; a view that is open follows. */
export function keepFacets(labels: readonly string[]): void {
  kept.value = listText(labels);
  if (address.peek().parameters.has(parameter)) showFacets(labels);
}

/** Puts them into the address, which a view is saved from. */
export const showFacets = (labels: readonly string[] = ownFacets()) =>
  setParameters({ [parameter]: listText(labels) }, false);
