import type { Event, Occurrence } from "#gen/belfry/events/v1/event_pb.ts";
import { linkTo } from "../data/address.ts";
import { calledOf } from "../events/entity-names.ts";
import { SeverityMark, statusWord } from "../events/words.tsx";
import { eventsWithLabel, valueText } from "../ui/facts.tsx";
import { durationText, Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import occurrenceLook from "./occurrence.module.css";

/** The labels that senders and models name an owner by, the first one that is there. */
const ownerLabels = ["owner", "team"];
const maps = ["metadataFields", "dimensions", "coreProperties"] as const;

/** Returns who is responsible, with the field that says so; undefined: no label does. */
function ownerOf(occurrence: Occurrence): { field: string; owner: string } | undefined {
  for (const label of ownerLabels) {
    for (const map of maps) {
      const owner = valueText(occurrence[map]?.[label]);
      if (owner !== "") return { field: `${map}.${label}`, owner };
    }
  }
  return undefined;
}

/** Says at a glance how bad it is and how it stands, for how long, of what, and whose it is. */
export function HeadLine({ event, occurrence }: { event: Event; occurrence: Occurrence }) {
  const { severity, status, acknowledged, startTime, endTime } = occurrence;
  const owner = ownerOf(occurrence);
  return (
    <ul class={occurrenceLook.headLine} aria-label="At a glance">
      <li class={occurrenceLook.pill}>
        <SeverityMark value={severity} />
      </li>
      <li>
        {statusWord(status)}
        {acknowledged && <span class={ui.tag}>acknowledged</span>}
      </li>
      <li>
        {endTime === undefined || startTime === undefined ? (
          <>
            <span class={ui.quiet}>Age</span> <Time at={startTime} age />
          </>
        ) : (
          <>
            <span class={ui.quiet}>Lasted</span> {durationText(Number(endTime - startTime))}
          </>
        )}
      </li>
      {event.entity && (
        <li>
          <span class={ui.quiet}>Entity</span>{" "}
          <a href={linkTo(["entities", event.entity])} title={event.entityName}>
            {calledOf(event) || event.entity}
          </a>
        </li>
      )}
      {owner && (
        <li>
          <span class={ui.quiet}>Owner</span> <a href={eventsWithLabel(owner.field, owner.owner)}>{owner.owner}</a>
        </li>
      )}
    </ul>
  );
}
