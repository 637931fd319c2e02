import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { type Credential, CredentialInfoSchema } from "#gen/belfry/credentials/v1/credential_pb.ts";
import {
  CredentialService,
  type ReplaceCredentialRequest,
  ReplaceCredentialRequestSchema,
} from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { may } from "../../data/session.ts";
import { ChoiceField, TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import { type Form, useForm } from "../../form/form.ts";
import { NamesField } from "../../form/names-field.tsx";
import { FormEnd } from "../../form/outcome.tsx";
import { credentialTypes } from "./credential-types.ts";
import { SecretFields } from "./secret-fields.tsx";

const credentials = clientOf(CredentialService);

type CredentialFormProps = { onSaved(credential: Credential): void } & (
  | { readonly stored: Credential; readonly type?: undefined }
  | { readonly stored?: undefined; readonly type: string }
);

/** The form of a credential, new or stored: over the request that replaces one, which has all that one can set. */
export function CredentialForm({ stored, type = "", onSaved }: CredentialFormProps) {
  const first = useMemo(
    () =>
      create(ReplaceCredentialRequestSchema, {
        id: stored?.id ?? "",
        info: stored?.info ?? create(CredentialInfoSchema, { type }),
      }),
    [stored],
  );
  const saved = useSignal<Credential | undefined>(undefined);
  const form: Form<typeof ReplaceCredentialRequestSchema> = useForm(ReplaceCredentialRequestSchema, {
    key: stored ? `credential/of/${stored.id}` : `credential/new/${type}`,
    stored: first,
    prefix: "",
    async send(value) {
      saved.value = await save(value, stored && form.stored, onSaved);
      return create(ReplaceCredentialRequestSchema, { id: saved.value.id, ...infoOf(saved.value) });
    },
    done() {
      if (saved.peek()) onSaved(saved.peek() as Credential);
    },
  });
  const info = form.value.info ?? create(CredentialInfoSchema);
  const change = (fields: Partial<typeof info>) =>
    form.change({ info: create(CredentialInfoSchema, { ...info, ...fields }) });
  const allowed = may(CredentialService.method[stored ? "replaceCredential" : "createCredential"]);
  return (
    <form class={formLook.form} onSubmit={form.submit} aria-label={stored ? "Credential" : "New credential"}>
      <fieldset class={formLook.bare} disabled={!allowed}>
        <TextField
          form={form}
          path="info.name"
          label="Name"
          required
          value={info.name}
          set={(name) => change({ name })}
        />
        <ChoiceField
          form={form}
          path="info.type"
          label="Kind"
          help={credentialTypes[info.type]?.serves}
          value={info.type}
          choices={Object.entries(credentialTypes).map(([name, { word }]) => [name, word])}
          set={(next) => form.change({ info: create(CredentialInfoSchema, { ...info, type: next }), secrets: {} })}
        />
        <SecretFields form={form} key={info.type} type={info.type} kept={stored?.info?.type === info.type} />
        <NamesField
          form={form}
          path="info.allowedHosts"
          label="May be sent to"
          help={hostsHelp(info.boundHosts)}
          values={info.allowedHosts}
          set={(allowedHosts) => change({ allowedHosts })}
        />
        <TextField
          form={form}
          path="info.description"
          label="Description"
          help="The purpose of the credential."
          rows={2}
          value={info.description}
          set={(description) => change({ description })}
        />
        <NamesField form={form} path="info.tags" label="Tags" values={info.tags} set={(tags) => change({ tags })} />
      </fieldset>
      {allowed && <FormEnd form={form} schema={ReplaceCredentialRequestSchema} send={stored ? "Save" : "Create"} />}
    </form>
  );
}

function hostsHelp(bound: readonly string[]): string {
  const none =
    bound.length === 0
      ? "None: the host of the first destination that uses it, from then on."
      : `None: as now, only ${bound.join(", ")}, where it was used first.`;
  const rest = "To allow others later, the secrets have to be given again.";
  return `Hosts, such as acme.example.com, or *.example.com for all names below one. ${none} ${rest}`;
}

const infoOf = ({ info }: Credential): MessageInitShape<typeof ReplaceCredentialRequestSchema> =>
  info ? { info } : {};

/** Creates or replaces it, and says so with the way back where no secret is lost. */
async function save(
  value: ReplaceCredentialRequest,
  before: ReplaceCredentialRequest | undefined,
  again: (credential: Credential) => void,
): Promise<Credential> {
  const { id } = value;
  // Of a draft the keys of secrets are kept without them.
  const secrets = Object.fromEntries(Object.entries(value.secrets).filter(([, text]) => text !== ""));
  const own = value.info ? { info: value.info } : {};
  const { info: now } =
    before === undefined
      ? await credentials.createCredential({ ...own, secrets })
      : await credentials.replaceCredential({ id, ...own, secrets });
  if (now === undefined) throw new RangeError("an answer without the credential");
  const name = now.info?.name ?? "";
  if (before === undefined) {
    const place = linkTo(["settings", "credentials", now.id]);
    say(`Credential "${name}" was created.`, async () => {
      await credentials.deleteCredential({ id: now.id });
      if (location.hash === place) goTo(linkTo(["settings", "credentials"]));
    });
  } else {
    const undo = async () => {
      const { info: back } = await credentials.replaceCredential({ id, ...(before.info && { info: before.info }) });
      again(back ?? now);
    };
    say(`Credential "${name}" was changed.`, Object.keys(secrets).length === 0 ? undo : undefined);
  }
  return now;
}
