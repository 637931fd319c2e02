import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";

/** The keys of the fields that a clause names. It need not have been checked. */
export function clauseKeys(clause: Clause): string[] {
  const keys: string[] = [];
  const waiting: (Clause | undefined)[] = [clause];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    waiting.push(...(next.allOf?.clauses ?? []), ...(next.anyOf?.clauses ?? []));
    if (next.noneOf?.clause !== undefined) waiting.push(next.noneOf.clause);
    for (const key of [next.filter?.field, next.oneOf?.field, next.range?.path]) if (key !== undefined) keys.push(key);
  }
  return keys;
}
