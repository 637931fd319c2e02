import type { UserGroup } from "#gen/belfry/users/v1/user_group_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { address, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { useList } from "../../data/list.ts";
import { may } from "../../data/session.ts";
import { type Column, textColumn } from "../../ui/column.ts";
import { ListScreen } from "../../ui/list-screen.tsx";
import { nameColumn } from "../../ui/name-column.tsx";
import { passesFilter } from "../../ui/text-filters.tsx";
import { NewGroup, OneGroup } from "./group.tsx";
import { roleWord } from "./roles.ts";

const groups = clientOf(UserGroupService);

const rolesText = ({ cloudRoles }: UserGroup) => cloudRoles.map(roleWord).join(", ");

const columns: readonly Column<UserGroup>[] = [
  nameColumn("Name", "minmax(140px, 1fr)", ({ name }) => name),
  textColumn("roles", "Roles", "minmax(180px, 2fr)", rolesText),
  {
    key: "filters",
    label: "Sees",
    width: "minmax(120px, 1fr)",
    cell: ({ restrictionFilters }) => restrictionFilters.join(", ") || "everything",
  },
];

/** The groups of people: all of them, one, or a new one. */
export function Groups() {
  const name = address.value.path[2];
  if (address.value.parameters.has("new")) return <NewGroup />;
  return name === undefined || name === "" ? <AllGroups /> : <OneGroup key={name} name={name} />;
}

function AllGroups() {
  const list = useList(
    () => ({ pageSize: 1000 }),
    async (query, pageToken, options) => {
      const page = await groups.listUserGroups({ ...query, pageToken }, options);
      return { rows: page.groups, next: page.nextPageToken, total: Number(page.totalCount) };
    },
  );
  return (
    <ListScreen
      title="Groups"
      list={list}
      filter="Search by name or role"
      passes={(group) => passesFilter(group.name, rolesText(group))}
      make={may(UserGroupService.method.createUserGroup) && ["New group", linkTo(["settings", "groups"], { new: "1" })]}
      none="There are no groups yet."
      noMatch="No group matches."
      about={
        <p>A group gives its accounts roles, and may restrict what they see. An account without one cannot log in.</p>
      }
      columns={columns}
      rowKey={({ name }) => name}
      hrefOf={({ name }) => linkTo(["settings", "groups", name])}
    />
  );
}
