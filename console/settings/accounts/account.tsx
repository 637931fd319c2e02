import { create } from "@bufbuild/protobuf";
import { type UserAccount, UserAccountSchema } from "#gen/belfry/users/v1/user_account_pb.ts";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { may } from "../../data/session.ts";
import { SecretField, TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import { type Form, useForm } from "../../form/form.ts";
import { NamesField } from "../../form/names-field.tsx";
import { FormEnd } from "../../form/outcome.tsx";
import { AskFirst } from "../../ui/ask-first.tsx";
import { One } from "../../ui/one.tsx";
import { Time } from "../../ui/time.tsx";
import ui from "../../ui/ui.module.css";

const accounts = clientOf(UserAccountService);
const groups = clientOf(UserGroupService);

export function NewAccount() {
  return (
    <One title="New account" of="accounts">
      <AccountForm stored={create(UserAccountSchema)} />
    </One>
  );
}

export function OneAccount({ id }: { id: string }) {
  const answer = useAnswer((signal) => accounts.getUserAccount({ id }, { signal }), undefined, "account");
  const { value, failure, again } = answer.value;
  const user = value?.user;
  return (
    <One
      title={user?.email ?? "Account"}
      of="accounts"
      failure={failure}
      again={again}
      tools={user && <Remove user={user} />}
    >
      {user && (
        <>
          <p class={ui.quiet}>
            Made <Time at={user.createdAt} />, changed <Time at={user.updatedAt} />
          </p>
          <AccountForm stored={user} again={again} />
        </>
      )}
    </One>
  );
}

interface AccountFormProps {
  stored: UserAccount;
  /** Reads it again. */
  again?: () => void;
}

/** Fields of an account that a change can set and a second change can set back. */
const changeable = ["email", "groups"];

/** Returns the paths that this change sets for good: a password is a secret, and a name stays. */
function setForGood(before: UserAccount, { password, firstName, lastName }: UserAccount): string[] {
  const paths: string[] = [];
  if (password) paths.push("password");
  if (before.firstName === "" && firstName !== "") paths.push("first_name");
  if (before.lastName === "" && lastName !== "") paths.push("last_name");
  return paths;
}

function AccountForm({ stored, again }: AccountFormProps) {
  const isNew = stored.id === "";
  const known = useAnswer((signal) => groups.listUserGroups({ pageSize: 1000 }, { signal }));
  const form: Form<typeof UserAccountSchema> = useForm(UserAccountSchema, {
    key: isNew ? "account/new" : `account/${stored.id}`,
    stored,
    prefix: "user",
    async send(user) {
      if (isNew) return (await accounts.createUserAccount({ user })).user;
      const paths = [...changeable, ...setForGood(form.stored, user)];
      return (await accounts.updateUserAccount({ id: stored.id, user, updateMask: { paths } })).user;
    },
    done({ id, email }) {
      if (isNew) {
        say(`The account of ${email} is made.`, () => accounts.deleteUserAccount({ id }));
        goTo(linkTo(["settings", "accounts", id]));
        return;
      }
      const before = form.stored;
      const takeBack = async () => {
        await accounts.updateUserAccount({ id, user: before, updateMask: { paths: changeable } });
        again?.();
      };
      say(`The account of ${email} is changed.`, setForGood(before, form.value).length === 0 ? takeBack : undefined);
      again?.();
    },
  });
  const { email, firstName, lastName, password, groups: chosen } = form.value;
  const once = "It cannot be changed once it is set.";
  return (
    <form class={formLook.form} onSubmit={form.submit} aria-label="Account">
      <TextField
        form={form}
        path="email"
        label="E-mail"
        required
        value={email}
        set={(next) => form.change({ email: next })}
      />
      <SecretField
        form={form}
        path="password"
        label={isNew ? "Password" : "New password"}
        required={isNew}
        value={password ?? ""}
        set={(next) => form.change({ password: next === "" ? undefined : next } as Partial<UserAccount>)}
        help="At least 8 characters of three classes: lower case, upper case, digits, ! @ # $ % ^ & *."
      />
      <TextField
        form={form}
        path="firstName"
        label="First name"
        readOnly={form.stored.firstName !== ""}
        value={firstName}
        set={(next) => form.change({ firstName: next })}
        help={once}
      />
      <TextField
        form={form}
        path="lastName"
        label="Last name"
        readOnly={form.stored.lastName !== ""}
        value={lastName}
        set={(next) => form.change({ lastName: next })}
        help={once}
      />
      <NamesField
        form={form}
        path="groups"
        label="Groups"
        help="Without any, the person cannot log in."
        values={chosen}
        suggestions={known.value.value?.groups.map(({ name }) => name) ?? []}
        set={(next) => form.change({ groups: next })}
      />
      {may(UserAccountService.method.updateUserAccount) && (
        <FormEnd form={form} schema={UserAccountSchema} send={isNew ? "Make the account" : "Save"} />
      )}
    </form>
  );
}

function Remove({ user }: { user: UserAccount }) {
  if (!may(UserAccountService.method.deleteUserAccount)) return null;
  return (
    <AskFirst
      action="Delete"
      question={`Delete the account of ${user.email}?`}
      act={async () => {
        await accounts.deleteUserAccount({ id: user.id });
        say(`The account of ${user.email} is deleted.`);
        goTo(linkTo(["settings", "accounts"]));
      }}
    >
      <p>It is deleted for good, its password with it.</p>
    </AskFirst>
  );
}
