import { LRUCache } from "lru-cache";

/** Whose comparisons were left undecided. */
type Comparing = { readonly tenantId: string; readonly triggerName: string } | { readonly silenceId: string };

/** When this process last left a comparison of a tenant's trigger or silence undecided. An entry takes some 200 bytes. */
const lastMs = new LRUCache<string, number>({ max: 10_000 });
/** After this time nothing is said of it any more. */
const rememberedMs = 86_400_000;

const keyOf = (what: Comparing) => ("silenceId" in what ? what.silenceId : `${what.tenantId}/${what.triggerName}`);

/** Notes that a comparison would have taken too many steps: the trigger matched, or the silence did not hold. */
export function noteUndecided(what: Comparing): void {
  lastMs.set(keyOf(what), Date.now());
}

/** Says that comparisons were left undecided during the last day; empty: none was. */
export function undecidedText(what: Comparing): string {
  const ms = lastMs.get(keyOf(what));
  if (ms === undefined || Date.now() - ms > rememberedMs) return "";
  const outcome = "silenceId" in what ? "it does not hold" : "it matches";
  return `a value was too long for its expressions, last at ${new Date(ms).toISOString()}: ${outcome} where that leaves it undecided`;
}
