import { type Rule, RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { blank } from "../../form/form.ts";
import { sameWritten } from "../../form/written.ts";

/** The values of a new rule: it is on, notifies when the match is over, and keeps silent during maintenance. */
export const blankRule = () =>
  blank(RuleSchema, { enabled: true, sendUpdates: true, muteDuringMaintenance: true, repeatInterval: 3600n });

/** Tells whether a rule differs from a new one in what its form folds. */
export function hasMore(rule: Rule): boolean {
  const { name, enabled, triggerNames, matchers, destinationNames, sendUpdates, message } = rule;
  const plain = { name, enabled, triggerNames, matchers, destinationNames, sendUpdates, message };
  return !sameWritten(RuleSchema, rule, Object.assign(blankRule(), plain));
}
