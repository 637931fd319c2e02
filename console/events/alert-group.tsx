import { create } from "@bufbuild/protobuf";
import { useEffect } from "preact/hooks";
import { ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { DeliveryService } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { goInstead, linkTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { oneOrNull } from "../data/one-or-null.ts";
import { Empty, Problem } from "../ui/problem.tsx";
import { ScreenHead } from "../ui/screen-head.tsx";
import ui from "../ui/ui.module.css";
import { clauseText } from "./query.ts";
import { parametersOfLabels } from "./terms.ts";

const deliveries = clientOf(DeliveryService);
const rules = clientOf(RuleService);

/** Most members that an address lists by their ids. */
const membersMax = 500;

/**
 * Returns the address at which a rule's group of alerts is shown: the list of what has its labels, open or ended; without labels, the members
 * of its newest message; where these are no occurrences, that message. Null: no message of it is stored.
 */
async function addressOfGroup(groupKey: string, signal: AbortSignal): Promise<string | null> {
  const [newest] = (await deliveries.listDeliveries({ groupKey, pageSize: 1 }, { signal })).deliveries;
  if (newest === undefined) return null;
  const { id, rule: name, groupLabels } = newest;
  const [{ members }, rule] = await Promise.all([
    deliveries.listDeliveryMembers({ id, pageSize: membersMax }, { signal }),
    oneOrNull(rules.getRule({ name }, { signal })),
  ]);
  const ids = members.flatMap(({ occurrenceId }) => occurrenceId || []);
  if (ids.length === 0) return linkTo(["deliveries"], { groupKey, open: id });
  const listed = (parameters: Record<string, string>) => linkTo(["events"], { status: "any", ...parameters });
  const labels = Object.entries(groupLabels);
  if (labels.length === 0) return listed({ where: clauseText(create(ClauseSchema, { withIds: { ids } })) });
  const absent = absentLabels(rule?.rule?.grouping?.by ?? [], groupLabels).map((label) => [label, ""] as const);
  return listed(parametersOfLabels([...labels, ...absent], clauseText));
}

/** Returns the labels by which a rule groups and that a group has not; none where the rule groups by others than those of the group. */
function absentLabels(by: readonly string[], groupLabels: Readonly<Record<string, string>>): string[] {
  if (Object.keys(groupLabels).some((label) => !by.includes(label))) return [];
  return by.filter((label) => !Object.hasOwn(groupLabels, label));
}

/** Leads from the link of a group's message to what the group has now. */
export function AlertGroup({ groupKey }: { groupKey: string }) {
  const { value, failure, again } = useAnswer((signal) => addressOfGroup(groupKey, signal), groupKey).value;
  useEffect(() => {
    if (value) goInstead(value);
  }, [value]);
  return (
    <div class={ui.screen}>
      <ScreenHead title="Events" count={value === undefined && failure === undefined && "Loading…"} />
      <Problem failure={failure} again={again} />
      {value === null && (
        <Empty title="No message of this group is stored any more.">
          <p>
            Its alerts may still be among the <a href={linkTo(["events"], { status: "any" })}>events</a>.
          </p>
        </Empty>
      )}
    </div>
  );
}
