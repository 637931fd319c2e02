import type { UserAccount } from "#gen/belfry/users/v1/user_account_pb.ts";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { address, goTo, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { useLaterPages } from "../../data/later-pages.ts";
import { may } from "../../data/session.ts";
import { Empty, Problem } from "../../ui/problem.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Time } from "../../ui/time.tsx";
import { Listing, passesFilter } from "../listing.tsx";
import { NewAccount, OneAccount } from "./account.tsx";

const accounts = clientOf(UserAccountService);

const nameOf = ({ firstName, lastName }: UserAccount) => `${firstName} ${lastName}`.trim();

const columns: readonly Column<UserAccount>[] = [
  {
    key: "email",
    label: "E-mail",
    width: "minmax(180px, 1.5fr)",
    line: 1,
    cell: ({ email }) => <strong>{email}</strong>,
    title: ({ email }) => email,
  },
  { key: "name", label: "Name", width: "minmax(120px, 1fr)", line: 2, cell: nameOf, title: nameOf },
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
  const answer = useAnswer((signal) => accounts.listUserAccounts({ pageSize: 500 }, { signal }));
  const { value, failure, again } = answer.value;
  const later = useLaterPages(value, value?.nextPageToken ?? "", async (_first, pageToken) => {
    const page = await accounts.listUserAccounts({ pageSize: 500, pageToken });
    return { rows: page.users, next: page.nextPageToken };
  });
  const all = [...(value?.users ?? []), ...later.rows];
  const rows = all.filter((account) => passesFilter(account.email, nameOf(account), account.groups.join(" ")));
  return (
    <Listing
      title="Accounts"
      total={value && Number(value.totalCount)}
      failure={failure}
      again={again}
      filter="Words of e-mail, name or group"
      make={may(UserAccountService.method.createUserAccount) && "New account"}
    >
      <Problem failure={later.failure} again={later.again} />
      {value && rows.length === 0 ? (
        <Empty title={all.length > 0 ? "No account matches." : "There are no accounts yet."}>
          <p>An account is a person's. Programs, and this console, use API keys instead.</p>
        </Empty>
      ) : (
        <Table
          label="Accounts"
          rows={rows}
          columns={columns}
          rowKey={({ id }) => id}
          open={({ id }) => goTo(linkTo(["settings", "accounts", id]))}
          more={() => void later.more()}
          total={rows.length < all.length ? rows.length : Number(value?.totalCount ?? 0n)}
        />
      )}
    </Listing>
  );
}
