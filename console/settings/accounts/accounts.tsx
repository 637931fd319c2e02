import type { UserAccount } from "#gen/belfry/users/v1/user_account_pb.ts";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { address, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { useList } from "../../data/list.ts";
import { may } from "../../data/session.ts";
import { type Column, textColumn } from "../../ui/column.ts";
import { ListScreen } from "../../ui/list-screen.tsx";
import { nameColumn } from "../../ui/name-column.tsx";
import { passesFilter } from "../../ui/text-filters.tsx";
import { Time } from "../../ui/time.tsx";
import { NewAccount, OneAccount } from "./account.tsx";

const accounts = clientOf(UserAccountService);

const nameOf = ({ firstName, lastName }: UserAccount) => `${firstName} ${lastName}`.trim();

const columns: readonly Column<UserAccount>[] = [
  nameColumn("E-mail", "minmax(180px, 1.5fr)", ({ email }) => email),
  textColumn("person", "Name", "minmax(120px, 1fr)", nameOf),
  {
    key: "groups",
    label: "Groups",
    width: "minmax(140px, 1.5fr)",
    line: 2,
    cell: ({ groups }) => groups.join(", ") || "none: cannot log in",
    title: ({ groups }) => groups.join(", "),
  },
  {
    key: "changed",
    label: "Changed",
    width: "100px",
    line: 1,
    end: true,
    sort: ({ updatedAt }) => updatedAt,
    cell: ({ updatedAt }) => <Time at={updatedAt} short />,
  },
];

/** The accounts of people: all of them, one, or a new one. */
export function Accounts() {
  const id = address.value.path[2];
  if (address.value.parameters.has("new")) return <NewAccount />;
  return id === undefined || id === "" ? <AllAccounts /> : <OneAccount key={id} id={id} />;
}

function AllAccounts() {
  const list = useList(
    () => ({ pageSize: 500 }),
    async (query, pageToken, options) => {
      const page = await accounts.listUserAccounts({ ...query, pageToken }, options);
      return { rows: page.users, next: page.nextPageToken, total: Number(page.totalCount) };
    },
  );
  return (
    <ListScreen
      title="Accounts"
      list={list}
      filter="Words of e-mail, name or group"
      passes={(account) => passesFilter(account.email, nameOf(account), account.groups.join(" "))}
      make={
        may(UserAccountService.method.createUserAccount) && [
          "New account",
          linkTo(["settings", "accounts"], { new: "1" }),
        ]
      }
      none="There are no accounts yet."
      noMatch="No account matches."
      about={<p>An account is a person's. Programs, and this console, use API keys instead.</p>}
      columns={columns}
      rowKey={({ id }) => id}
      hrefOf={({ id }) => linkTo(["settings", "accounts", id])}
    />
  );
}
