import { groupJobs } from "../subject/group-jobs.ts";
import type { Due, Notice } from "../subject/notice.ts";
import type { Decided, Stage } from "./batch.ts";

const isUpdate = ({ occasion }: Due) => occasion !== "first" && occasion !== "repeat" && occasion !== "clear";

/** Tells whether a member of a group begins or ends, or is called otherwise. */
const changesGroup = ({ over, due, match }: Decided) =>
  over ||
  due.some(({ occasion }) => occasion === "first" || occasion === "clear") ||
  match.subject.eventId === undefined;

/**
 * Makes messages of decisions: each is one of its own, to each destination of its rule. Of members of groups a look at their groups is
 * left, which has messages made when it is time.
 */
export const group: Stage = ({ decided, jobs }) => {
  const members = decided.filter((each) => each.match.grouped && changesGroup(each)).map(({ match }) => match);
  const notices = decided.flatMap(({ rule, match, before, told, due, holds }) =>
    (match.grouped ? [] : due).map((each): Notice => {
      const { destinationNames } = rule;
      const { triggerNames, subject } = match;
      // By it an update that was held tells whether anything has changed since.
      const since = isUpdate(each) && before !== undefined ? { since: before } : {};
      return {
        ...each,
        ruleId: rule.id,
        ruleName: rule.name,
        destinationNames,
        triggerNames,
        subject,
        told: { ...told, ...since },
        ...(holds && { holds }),
      };
    }),
  );
  const over = decided.flatMap(({ over, rule, match }) =>
    over && !match.grouped ? [{ rule, key: match.subject.key, heldOnly: false }] : [],
  );
  return { notices, over, ...(members.length > 0 && { jobs: [...jobs, groupJobs(members)] }) };
};
