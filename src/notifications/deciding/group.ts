import type { Notice, Stage } from "./passage.ts";

/** Makes messages of decisions: each is one of its own, to each destination of its rule. */
export const group: Stage = ({ decided }) => ({
  notices: decided.flatMap(({ rule, match, told, due }) =>
    due.map((each): Notice => {
      const { destinationNames } = rule;
      return { ...each, rule, destinationNames, triggerNames: match.triggerNames, subject: match.subject, told };
    }),
  ),
});
