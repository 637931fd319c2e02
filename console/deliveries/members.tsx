import { type Delivery, DeliveryService } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { Problem } from "../ui/problem.tsx";
import ui from "../ui/ui.module.css";

const deliveries = clientOf(DeliveryService);

/** Returns the labels of a delivery's group, as in `rack=r1, cluster=c1`; empty without any. */
export const groupText = ({ groupLabels }: Pick<Delivery, "groupLabels">) =>
  Object.entries(groupLabels)
    .map(([name, text]) => `${name}=${text}`)
    .join(", ");

/** Shows the alerts of a group's message: their count, the labels that they share, and the first of them. */
export function GroupMembers({ delivery }: { delivery: Delivery }) {
  const { id, memberCount, resolvedCount } = delivery;
  const { value, failure, again } = useAnswer((signal) => deliveries.listDeliveryMembers({ id }, { signal }), id).value;
  const labels = groupText(delivery);
  const more = memberCount - (value?.members.length ?? memberCount);
  return (
    <details>
      <summary>
        {memberCount - resolvedCount} firing, {resolvedCount} resolved{labels !== "" && `: ${labels}`}
      </summary>
      <ul>
        {value?.members.map(({ occurrenceId, subject, resolved }) => (
          <li key={subject}>
            {occurrenceId ? <a href={linkTo(["occurrences", occurrenceId])}>{occurrenceId}</a> : subject}
            {resolved && " (resolved)"}
          </li>
        ))}
      </ul>
      {more > 0 && <p class={ui.hint}>and {more.toLocaleString("en")} more</p>}
      <Problem failure={failure} again={again} />
    </details>
  );
}
