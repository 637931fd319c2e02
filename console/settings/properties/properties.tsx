import { CustomPropertyService } from "#gen/belfry/properties/v1/custom_property_service_pb.ts";
import type { CustomPropertyUpdater } from "#gen/belfry/properties/v1/custom_property_updater_pb.ts";
import { CustomPropertyUpdaterService } from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import { address, goTo, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { useLaterPages } from "../../data/later-pages.ts";
import { may } from "../../data/session.ts";
import { valueText } from "../../ui/facts.tsx";
import { Empty, Problem } from "../../ui/problem.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Listing, passesFilter } from "../listing.tsx";
import { SetOnce } from "./set-once.tsx";
import { NewUpdater, OneUpdater } from "./updater.tsx";

const updaters = clientOf(CustomPropertyUpdaterService);

const setsText = ({ properties }: CustomPropertyUpdater) =>
  Object.entries(properties ?? {})
    .map(([name, value]) => `${name} = ${valueText(value)}`)
    .join(", ");

const columns: readonly Column<CustomPropertyUpdater>[] = [
  {
    key: "name",
    label: "Name",
    width: "minmax(140px, 1fr)",
    line: 1,
    cell: ({ name }) => <strong>{name}</strong>,
    title: ({ name }) => name,
  },
  { key: "enabled", label: "Runs", width: "70px", line: 1, end: true, cell: ({ enabled }) => (enabled ? "yes" : "no") },
  { key: "sets", label: "Sets", width: "minmax(180px, 2fr)", line: 2, cell: setsText, title: setsText },
  { key: "sequence", label: "Place", width: "70px", end: true, cell: ({ sequence }) => sequence },
  { key: "tags", label: "Tags", width: "minmax(100px, 1fr)", cell: ({ tags }) => tags.join(", ") },
];

/** What sets custom properties by itself, and the way to set some once: all updaters, one, a new one. */
export function Properties() {
  const { path, parameters } = address.value;
  const id = path[2] ?? "";
  if (parameters.has("once")) return <SetOnce />;
  if (parameters.has("new")) return <NewUpdater />;
  return <AllUpdaters open={id} />;
}

/** The API has no updater by its id alone: one that is open is looked for in the list. */
function AllUpdaters({ open }: { open: string }) {
  const answer = useAnswer((signal) => updaters.listCustomPropertyUpdaters({ pageInput: { limit: 1000 } }, { signal }));
  const { value, failure, again } = answer.value;
  const nextOf = (info: { hasNext: boolean; cursor: string } | undefined) => (info?.hasNext ? info.cursor : "");
  const later = useLaterPages(value, nextOf(value?.pageInfo), async (_first, cursor) => {
    const page = await updaters.listCustomPropertyUpdaters({ pageInput: { limit: 1000, cursor } });
    return { rows: page.updaters, next: nextOf(page.pageInfo) };
  });
  const all = [...(value?.updaters ?? []), ...later.rows];
  const opened = all.find(({ id }) => id === open);
  if (opened) return <OneUpdater key={opened.id} updater={opened} again={again} />;
  const rows = all.filter((updater) => passesFilter(updater.name, setsText(updater), updater.tags.join(" ")));
  return (
    <Listing
      title="Custom properties"
      total={value && all.length}
      failure={failure}
      again={again}
      filter="Words of name, property or tags"
      make={may(CustomPropertyUpdaterService.method.createCustomPropertyUpdaters) && "New updater"}
      tools={
        may(CustomPropertyService.method.setCustomProperties) && (
          <a class="button" href={linkTo(["settings", "properties"], { once: "1" })}>
            Set once
          </a>
        )
      }
    >
      <Problem failure={later.failure} again={later.again} />
      {open !== "" && value && <Problem failure={{ message: "There is no such updater.", fields: [] }} />}
      {value && rows.length === 0 ? (
        <Empty title={all.length > 0 ? "No updater matches." : "There are no updaters yet."}>
          <p>
            An updater sets properties, such as a team or a tier, on all entities that meet its conditions, and on those
            that come. On one entity a person sets them on its own page.
          </p>
        </Empty>
      ) : (
        <Table
          label="Updaters"
          rows={rows}
          columns={columns}
          rowKey={({ id }) => id}
          open={({ id }) => goTo(linkTo(["settings", "properties", id]))}
          more={() => void later.more()}
        />
      )}
    </Listing>
  );
}
