import type { Due } from "./decide.ts";
import type { Notice, Stage } from "./passage.ts";

const isUpdate = ({ occasion }: Due) => occasion !== "first" && occasion !== "repeat" && occasion !== "clear";

/** Makes messages of decisions: each is one of its own, to each destination of its rule. */
export const group: Stage = ({ decided }) => ({
  notices: decided.flatMap(({ rule, match, before, told, due, holds }) =>
    due.map((each): Notice => {
      const { destinationNames } = rule;
      const { triggerNames, subject } = match;
      // By it an update that was held tells whether anything has changed since.
      const since = isUpdate(each) && before !== undefined ? { since: before } : {};
      return {
        ...each,
        rule,
        destinationNames,
        triggerNames,
        subject,
        told: { ...told, ...since },
        ...(holds && { holds }),
      };
    }),
  ),
});
