import {
  type Delivery,
  type DeliveryMember,
  DeliveryService,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { Problem } from "../ui/problem.tsx";
import ui from "../ui/ui.module.css";
import { groupText, type Names, useNames } from "./subject-names.ts";

const deliveries = clientOf(DeliveryService);

/** Shows the alerts of a group's message: their count, the labels that they share, and the first of them. */
export function GroupMembers({ delivery }: { delivery: Delivery }) {
  const { id, groupKey, memberCount, resolvedCount } = delivery;
  const { value, failure, again } = useAnswer((signal) => deliveries.listDeliveryMembers({ id }, { signal }), id).value;
  const members = value?.members ?? [];
  const unnamed = members.filter(({ headline }) => headline === "");
  const names = useNames(
    [],
    unnamed.map(({ eventId }) => eventId),
    members.map(({ entityId }) => entityId),
  );
  const labels = groupText(delivery);
  const more = value === undefined ? 0 : memberCount - members.length;
  return (
    <details open>
      <summary>
        {memberCount - resolvedCount} firing, {resolvedCount} resolved{labels !== "" && `: ${labels}`}
      </summary>
      <p>
        <a href={linkTo(["events"], { groupKey })}>The group in Events</a> ·{" "}
        <a href={linkTo(["deliveries"], { groupKey })}>All its messages</a>
      </p>
      <ul>
        {members.map((member) => (
          <li key={member.subject}>
            <Member member={member} names={names} />
          </li>
        ))}
      </ul>
      {more > 0 && <p class={ui.hint}>and {more.toLocaleString("en")} more</p>}
      <Problem failure={failure} again={again} />
    </details>
  );
}

/** One alert, by what the message says of it, linked to its occurrence; of a series to its entity. */
function Member({ member, names }: { member: DeliveryMember; names: Names }) {
  const { eventId, occurrenceId, entityId, subject, headline, resolved } = member;
  const entity = names.get(entityId) ?? "";
  const text =
    headline === ""
      ? names.get(eventId) || entity || occurrenceId || subject
      : // The headline of a series names its entity.
        `${headline}${occurrenceId !== "" && entity !== "" ? ` on ${entity}` : ""}`;
  const to = occurrenceId !== "" ? ["occurrences", occurrenceId] : ["entities", entityId];
  return (
    <>
      <a href={linkTo(to)}>{text}</a>
      {resolved && " (resolved)"}
    </>
  );
}
