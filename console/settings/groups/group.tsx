import { create } from "@bufbuild/protobuf";
import { UserAccountService } from "#gen/belfry/users/v1/user_account_service_pb.ts";
import { type UserGroup, UserGroupSchema } from "#gen/belfry/users/v1/user_group_pb.ts";
import { UserGroupService } from "#gen/belfry/users/v1/user_group_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { may } from "../../data/session.ts";
import { FieldErrors, TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import { type Form, useForm } from "../../form/form.ts";
import { NamesField } from "../../form/names-field.tsx";
import { FormEnd } from "../../form/outcome.tsx";
import { AskFirst } from "../../ui/ask-first.tsx";
import { One } from "../../ui/one.tsx";
import { Problem } from "../../ui/problem.tsx";
import ui from "../../ui/ui.module.css";
import { roleNames, roleWord } from "./roles.ts";

const groups = clientOf(UserGroupService);
const accounts = clientOf(UserAccountService);

const changeable = ["cloud_roles", "restriction_filters"];

const list = linkTo(["settings", "groups"]);

export function NewGroup() {
  return (
    <One title="New group" of="groups">
      <GroupForm stored={create(UserGroupSchema)} isNew />
    </One>
  );
}

export function OneGroup({ name }: { name: string }) {
  const answer = useAnswer((signal) => groups.getUserGroup({ name }, { signal }), undefined, "group");
  const { value, failure, again } = answer.value;
  const group = value?.group;
  return (
    <One title={name} of="groups" failure={failure} again={again} tools={group && <Remove group={group} />}>
      {group && <GroupForm stored={group} again={again} />}
      <Members name={name} />
    </One>
  );
}

interface GroupFormProps {
  stored: UserGroup;
  isNew?: boolean;
  /** Reads it again. */
  again?: () => void;
}

function GroupForm({ stored, isNew = false, again }: GroupFormProps) {
  const form: Form<typeof UserGroupSchema> = useForm(UserGroupSchema, {
    key: isNew ? "group/new" : `group/${stored.name}`,
    stored,
    prefix: "group",
    async send(group) {
      if (isNew) await groups.createUserGroup({ group });
      else await groups.updateUserGroup({ group, updateMask: { paths: changeable } });
      return (await groups.getUserGroup({ name: group.name })).group;
    },
    done(group) {
      if (isNew) {
        say(`The group "${group.name}" is made.`, () => groups.deleteUserGroup({ name: group.name }));
        goTo(linkTo(["settings", "groups", group.name]));
      } else {
        const before = form.stored;
        say(`The group "${group.name}" is changed.`, async () => {
          await groups.updateUserGroup({ group: before, updateMask: { paths: changeable } });
          again?.();
        });
        again?.();
      }
    },
  });
  const { name, cloudRoles, restrictionFilters } = form.value;
  const allowed = may(UserGroupService.method.updateUserGroup);
  const choose = (role: string, chosen: boolean) =>
    form.change({ cloudRoles: chosen ? [...cloudRoles, role] : cloudRoles.filter((each) => each !== role) });
  return (
    <form class={formLook.form} onSubmit={form.submit} aria-label="Group">
      {isNew && (
        <TextField
          form={form}
          path="name"
          label="Name"
          required
          value={name}
          set={(next) => form.change({ name: next })}
          help="The name cannot be changed later."
        />
      )}
      <fieldset>
        <legend>Roles</legend>
        {roleNames.map((role) => (
          <label key={role}>
            <input
              type="checkbox"
              checked={cloudRoles.includes(role)}
              onChange={({ currentTarget }) => choose(role, currentTarget.checked)}
            />{" "}
            {roleWord(role)}
          </label>
        ))}
        <FieldErrors form={form} path="cloudRoles" label="Roles" />
      </fieldset>
      <NamesField
        form={form}
        path="restrictionFilters"
        label="Sees only"
        help="Each as cz0:Groups/Europe. None: everything."
        values={restrictionFilters}
        set={(filters) => form.change({ restrictionFilters: filters })}
      />
      {allowed && <FormEnd form={form} schema={UserGroupSchema} send={isNew ? "Make the group" : "Save"} />}
    </form>
  );
}

function Remove({ group }: { group: UserGroup }) {
  if (!may(UserGroupService.method.deleteUserGroup)) return null;
  return (
    <AskFirst
      action="Delete"
      question={`Delete the group "${group.name}"?`}
      act={async () => {
        await groups.deleteUserGroup({ name: group.name });
        say(`The group "${group.name}" is deleted.`);
        goTo(list);
      }}
    >
      <p>Its accounts leave it. One that is in no other group cannot log in any more.</p>
    </AskFirst>
  );
}

function Members({ name }: { name: string }) {
  const answer = useAnswer((signal) => accounts.listUserAccounts({ group: name, pageSize: 1000 }, { signal }));
  const { value, failure, again } = answer.value;
  const more = Number(value?.totalCount ?? 0n) - (value?.users.length ?? 0);
  return (
    <section class={ui.card} aria-labelledby="members">
      <h2 id="members">Accounts in it</h2>
      <Problem failure={failure} again={again} />
      {value?.users.length === 0 && <p class={ui.quiet}>None.</p>}
      <ul>
        {value?.users.map(({ id, email, firstName, lastName }) => (
          <li key={id}>
            <a href={linkTo(["settings", "accounts", id])}>{email}</a>{" "}
            <span class={ui.quiet}>{[firstName, lastName].join(" ").trim()}</span>
          </li>
        ))}
      </ul>
      {more > 0 && <p class={ui.quiet}>and {more.toLocaleString("en")} more</p>}
    </section>
  );
}
