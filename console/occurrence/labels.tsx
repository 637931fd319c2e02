import type { Event, Occurrence } from "#gen/belfry/events/v1/event_pb.ts";
import { goTo } from "../data/address.ts";
import { eventsWithLabel, eventsWithoutLabel, Facts, momentOf } from "../ui/facts.tsx";
import ui from "../ui/ui.module.css";
import occurrenceLook from "./occurrence.module.css";

/** The longest key with its value that a chip holds: what is longer is a text, not a label. */
const chipMax = 80;

/** Begins the keys of annotations of alerts, which come among the labels. */
const annotationPrefix = "annotation.";

const isChip = (key: string, value: unknown): value is string =>
  typeof value === "string" &&
  value !== "" &&
  key.length + value.length <= chipMax &&
  !key.startsWith(annotationPrefix) &&
  momentOf(value) === undefined &&
  !/https?:\/\/|\n/i.test(value);

type Values = Readonly<Record<string, unknown>>;

/** Divides values into those of chips, in the order of their keys, and the others. */
function divided(values: Values): { chips: [string, string][]; others: Values } {
  const chips: [string, string][] = [];
  const others: Record<string, unknown> = {};
  for (const key of Object.keys(values).sort()) {
    const value = values[key];
    if (isChip(key, value)) chips.push([key, value]);
    else others[key] = value;
  }
  return { chips, others };
}

/** Shows its labels as chips, each of which leads to the events that have it, too, or to those without it. */
export function Labels({ event, occurrence }: { event: Event; occurrence: Occurrence }) {
  const { summary, body, dimensions, metadataFields = {}, coreProperties = {} } = occurrence;
  // Alertmanager's summary and description come twice.
  const told = Object.entries(metadataFields).filter(
    ([key, value]) => !key.startsWith(annotationPrefix) || (value !== summary && value !== body),
  );
  const ofEntity = divided(dimensions);
  const ofEvent = divided(Object.fromEntries(told));
  const chips = [
    ...ofEntity.chips.map(([label, value]) => ({ field: `dimensions.${label}`, label, value })),
    ...ofEvent.chips.map(([label, value]) => ({ field: `metadataFields.${label}`, label, value })),
  ];
  return (
    <section class={ui.card} aria-labelledby="labels">
      <h2 id="labels">Labels</h2>
      <ul class={occurrenceLook.chips}>
        {chips.map((chip) => (
          <Chip key={chip.field} {...chip} />
        ))}
      </ul>
      <Facts title="Dimensions" values={ofEntity.others} prefix="dimensions." />
      <Facts title="Metadata" values={ofEvent.others} prefix="metadataFields." />
      <Facts title="Core properties of the entity" values={coreProperties} folded />
      {event.dedupKey !== undefined && (
        <details class={ui.factGroup}>
          <summary>Dedup key</summary>
          {event.dedupKey}
        </details>
      )}
    </section>
  );
}

function Chip({ field, label, value }: { field: string; label: string; value: string }) {
  return (
    <li class={occurrenceLook.chip}>
      <a
        href={eventsWithLabel(field, value)}
        aria-label={`Events with ${label}=${value}`}
        title={`${label}=${value}: events with it, with Alt those without it`}
        onClick={(event) => {
          if (!event.altKey) return;
          event.preventDefault();
          goTo(eventsWithoutLabel(field, value));
        }}
      >
        <span class={ui.quiet}>{label}</span> {value}
      </a>
      <a href={eventsWithoutLabel(field, value)} aria-label={`Events without ${label}=${value}`}>
        −
      </a>
    </li>
  );
}
