import { byteaArray, textArray } from "../../../db/batch.ts";
import type { StoredMatch } from "../../rules/match-store.ts";
import { keyText, staleSubject } from "../../subject/subject.ts";
import { type CurrentState, pairText, type ReadCurrentStates } from "../current-state.ts";

/**
 * How rules that were changed see entities whose data stay away, by `pairText`. A match stands as long as the rule waits for these data
 * and none has come; an entity that is not watched yet is taken in as one whose data stay away.
 */
export const lookAtWatches: ReadCurrentStates = async (tx, tenantId, matches, { rules, judges }) => {
  if (!judges) return new Map();
  const own = matches.flatMap((match) => {
    const name = match.triggerNames.find((each) => isOf(each, match));
    return name === undefined ? [] : [{ match, name }];
  });
  if (own.length === 0) return new Map();
  const rows = await tx<{ name: string; id: Buffer }[]>`
    select w.trigger_name as name, w.entity_id as id
    from unnest(
      ${textArray(own.map(({ name }) => name))}::text[],
      ${byteaArray(own.map(({ match }) => match.subject.entityId))}::bytea[]
    ) as asked (name, id)
    cross join lateral (
      select trigger_name, entity_id from stale_watches
      where tenant_id = ${tenantId} and trigger_name = asked.name and entity_id >= asked.id and entity_id <= asked.id
        and not fired
      order by entity_id offset 0
    ) as w`;
  const back = new Set(rows.map(({ name, id }) => `${keyText(id)}${name}`));
  return new Map(
    own.map(({ match, name }): [string, CurrentState] => {
      const used = rules.byId.get(match.ruleId)?.triggerNames.includes(name);
      const waits = used && rules.triggers.get(name)?.type.source.case === "staleData";
      const stands = waits && !back.has(`${keyText(match.subject.entityId)}${name}`);
      return [pairText(match), { triggerNames: stands ? [name] : [], now: undefined, told: {} }];
    }),
  );
};

const isOf = (triggerName: string, { subject }: StoredMatch) =>
  staleSubject(triggerName, subject.entityId, "").key.equals(subject.key);
