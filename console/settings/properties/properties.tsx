import { CustomPropertyService } from "#gen/belfry/properties/v1/custom_property_service_pb.ts";
import type { CustomPropertyUpdater } from "#gen/belfry/properties/v1/custom_property_updater_pb.ts";
import { CustomPropertyUpdaterService } from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import { address, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { useList } from "../../data/list.ts";
import { may } from "../../data/session.ts";
import { type Column, textColumn } from "../../ui/column.ts";
import { valueText } from "../../ui/facts.tsx";
import { ListScreen } from "../../ui/list-screen.tsx";
import { nameColumn } from "../../ui/name-column.tsx";
import { passesFilter } from "../../ui/text-filters.tsx";
import ui from "../../ui/ui.module.css";
import { SetOnce } from "./set-once.tsx";
import { NewUpdater, OneUpdater } from "./updater.tsx";

const updaters = clientOf(CustomPropertyUpdaterService);

const setsText = ({ properties }: CustomPropertyUpdater) =>
  Object.entries(properties ?? {})
    .map(([name, value]) => `${name} = ${valueText(value)}`)
    .join(", ");

const columns: readonly Column<CustomPropertyUpdater>[] = [
  nameColumn("Name", "minmax(140px, 1fr)", ({ name }) => name),
  { key: "enabled", label: "Runs", width: "70px", line: 1, end: true, cell: ({ enabled }) => (enabled ? "yes" : "no") },
  textColumn("sets", "Sets", "minmax(180px, 2fr)", setsText),
  { key: "sequence", label: "Order", width: "70px", line: 0, end: true, cell: ({ sequence }) => sequence },
  { key: "tags", label: "Tags", width: "minmax(100px, 1fr)", cell: ({ tags }) => tags.join(", ") },
];

/** Shows the updaters of custom properties, one of them or a new one, and the way to set properties once. */
export function Properties() {
  const { path, parameters } = address.value;
  const id = path[2] ?? "";
  if (parameters.has("once")) return <SetOnce />;
  if (parameters.has("new")) return <NewUpdater />;
  return <AllUpdaters open={id} />;
}

/** The API has no updater by its id alone: one that is open is looked for in the list. */
function AllUpdaters({ open }: { open: string }) {
  const list = useList(
    () => ({}),
    async (_asked, cursor, options) => {
      const input = { pageInput: { limit: 1000, cursor } };
      const { updaters: rows, pageInfo } = await updaters.listCustomPropertyUpdaters(input, options);
      return { rows, next: pageInfo?.hasNext ? pageInfo.cursor : "" };
    },
  );
  const opened = list.rows.find(({ id }) => id === open);
  if (opened) return <OneUpdater key={opened.id} updater={opened} again={list.again} />;
  const missing = open !== "" && list.total !== undefined;
  return (
    <ListScreen
      title="Custom properties"
      list={list}
      filter="Words of name, property or tags"
      passes={(updater) => passesFilter(updater.name, setsText(updater), updater.tags.join(" "))}
      tools={
        may(CustomPropertyService.method.setCustomProperties) && (
          <a class={ui.button} href={linkTo(["settings", "properties"], { once: "1" })}>
            Set once
          </a>
        )
      }
      make={
        may(CustomPropertyUpdaterService.method.createCustomPropertyUpdaters) && [
          "New updater",
          linkTo(["settings", "properties"], { new: "1" }),
        ]
      }
      failure={missing ? { message: "There is no such updater.", fields: [] } : undefined}
      none="There are no updaters yet."
      noMatch="No updater matches."
      about={
        <p>
          An updater sets properties, such as a team or a tier, on all entities that meet its conditions, and on those
          that come. On one entity a person sets them on its own page.
        </p>
      }
      label="Updaters"
      columns={columns}
      rowKey={({ id }) => id}
      hrefOf={({ id }) => linkTo(["settings", "properties", id])}
    />
  );
}
