import type { UserGroup } from "#gen/belfry/users/v1/user_group_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { address, goTo, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { useLaterPages } from "../../data/later-pages.ts";
import { may } from "../../data/session.ts";
import { Empty, Problem } from "../../ui/problem.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Listing, passesFilter } from "../listing.tsx";
import { NewGroup, OneGroup } from "./group.tsx";
import { roleWord } from "./roles.ts";

const groups = clientOf(UserGroupService);

const rolesText = ({ cloudRoles }: UserGroup) => cloudRoles.map(roleWord).join(", ");

const columns: readonly Column<UserGroup>[] = [
  {
    key: "name",
    label: "Name",
    width: "minmax(140px, 1fr)",
    line: 1,
    cell: ({ name }) => <strong>{name}</strong>,
    title: ({ name }) => name,
  },
  { key: "roles", label: "Roles", width: "minmax(180px, 2fr)", line: 2, cell: rolesText, title: rolesText },
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
  const answer = useAnswer((signal) => groups.listUserGroups({ pageSize: 1000 }, { signal }));
  const { value, failure, again } = answer.value;
  const later = useLaterPages(value, value?.nextPageToken ?? "", async (_first, pageToken) => {
    const page = await groups.listUserGroups({ pageSize: 1000, pageToken });
    return { rows: page.groups, next: page.nextPageToken };
  });
  const all = [...(value?.groups ?? []), ...later.rows];
  const rows = all.filter((group) => passesFilter(group.name, rolesText(group)));
  return (
    <Listing
      title="Groups"
      total={value && Number(value.totalCount)}
      failure={failure}
      again={again}
      filter="Search by name or role"
      make={may(UserGroupService.method.createUserGroup) && "New group"}
    >
      <Problem failure={later.failure} again={later.again} />
      {value && rows.length === 0 ? (
        <Empty title={all.length > 0 ? "No group matches." : "There are no groups yet."}>
          <p>A group gives its accounts roles, and may restrict what they see. An account without one cannot log in.</p>
        </Empty>
      ) : (
        <Table
          label="Groups"
          rows={rows}
          columns={columns}
          rowKey={({ name }) => name}
          open={({ name }) => goTo(linkTo(["settings", "groups", name]))}
          more={() => void later.more()}
          total={rows.length < all.length ? rows.length : Number(value?.totalCount ?? 0n)}
        />
      )}
    </Listing>
  );
}
