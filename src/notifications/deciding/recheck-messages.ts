import type { Db } from "../../db/connect.ts";
import { paced } from "../../event-loop.ts";
import { stillFiring } from "../groups/group-store.ts";
import { readStanding } from "../groups/read-standing.ts";
import type { LoadedRule, TenantRules } from "../rules/tenant-rules.ts";
import { mayHold } from "../silences/mutes.ts";
import { workMs } from "../silences/silences-in-force.ts";
import type { WaitingDelivery } from "../subject/delivery.ts";
import type { Hold } from "../subject/notice.ts";
import { type Ends, unneeded, type Verdict } from "./verdict.ts";

/** Members that one look reads. */
const portion = 500;

/** Says of a message that it reports ends: its group has forgotten these members. */
export const endsIn = ({ occasion, told }: Pick<WaitingDelivery, "occasion" | "told">): Partial<Ends> =>
  occasion === "members" && (told.group?.resolved ?? 0) > 0 ? { reportsEnds: true } : {};

/**
 * Holds messages of groups that are about to be tried against the silences of now. One goes out as it was decided while anything that it
 * reports as firing is not silenced; what it does not name is to be sent. None of them is an end.
 */
export async function judgeMessages(
  db: Db,
  tenantId: string,
  messages: readonly WaitingDelivery[],
  rules: Pick<TenantRules, "silences" | "byId">,
  nowMs: number,
): Promise<Map<string, Verdict>> {
  const verdicts = new Map<string, Verdict>();
  const isAsked = mayHold({ ...rules, nowMs }) ? () => true : ({ silenceId }: WaitingDelivery) => silenceId !== null;
  const byMessage = Map.groupBy(messages.filter(isAsked), ({ ruleId, told }) => `${ruleId} ${told.group?.message}`);
  const untilMs = performance.now() + workMs;
  for (const [i, some] of [...byMessage.values()].entries()) {
    if (i > 0 && performance.now() > untilMs) {
      for (const { id } of some) verdicts.set(id, { send: "next" });
      continue;
    }
    const [{ ruleId }] = some as [WaitingDelivery, ...WaitingDelivery[]];
    const rule = rules.byId.get(ruleId);
    if (rule === undefined) continue;
    const { isOver, holds } = await lookAtMessage(db, tenantId, rule, some, rules.silences, nowMs);
    for (const message of some) {
      const { id, destinationName, occasion, silenceId } = message;
      const hold = holds.get(destinationName);
      const ends = endsIn(message);
      if (isOver && silenceId !== null)
        verdicts.set(id, { ...unneeded("all that it reports as firing has ended"), ...ends });
      else if (hold !== undefined && occasion === "repeat") verdicts.set(id, unneeded("a silence holds it"));
      else if (hold !== undefined) verdicts.set(id, { send: "silenced", ...hold, ...ends });
    }
  }
  return verdicts;
}

/**
 * Finds, by destination, the silence that holds a message: of those over its members the one that ends first, when the others are asked
 * again. `isOver`: none of those that fired is a member of the group any more.
 */
async function lookAtMessage(
  db: Db,
  tenantId: string,
  rule: LoadedRule,
  deliveries: readonly WaitingDelivery[],
  silences: TenantRules["silences"],
  nowMs: number,
): Promise<{ isOver: boolean; holds: ReadonlyMap<string, Hold> }> {
  const [{ subject, told }] = deliveries as [WaitingDelivery, ...WaitingDelivery[]];
  const pace = paced(undefined, tenantId);
  const holds = new Map<string, Hold>();
  const left = new Set(deliveries.map(({ destinationName }) => destinationName));
  let isOver = true;
  for (let after = -1; left.size > 0; ) {
    const message = { id: told.group?.message ?? "", ruleId: rule.id, groupKey: subject.key };
    const members = await stillFiring(db, tenantId, message, after, portion);
    if (members.length > 0) isOver = false;
    const keys = members.map((member) => member.subject);
    const standing = await readStanding(db, tenantId, rule, keys, { silences, nowMs, pace });
    for (const { silenced } of standing.values()) {
      for (const name of left) {
        const hold = silenced.get(name);
        if (hold === undefined) left.delete(name);
        else if (hold.untilMs < (holds.get(name)?.untilMs ?? Infinity)) holds.set(name, hold);
      }
    }
    if (members.length < portion) break;
    after = members.at(-1)?.place ?? after;
  }
  return { isOver, holds: new Map([...holds].filter(([name]) => left.has(name))) };
}
