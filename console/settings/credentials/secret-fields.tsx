import { useSignal } from "@preact/signals";
import type { ReplaceCredentialRequestSchema } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { ChoiceField, SecretField, TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import type { Form } from "../../form/form.ts";
import { credentialTypes } from "./credential-types.ts";

interface SecretFieldsProps {
  readonly form: Form<typeof ReplaceCredentialRequestSchema>;
  readonly type: string;
  /** Secrets are stored that stay when none is written. */
  readonly kept: boolean;
}

/** The secrets of a type: all of them, or none where some are stored. */
export function SecretFields({ form, type, kept }: SecretFieldsProps) {
  const forms = credentialTypes[type]?.forms ?? [];
  const { secrets } = form.value;
  const chosen = useSignal(
    Math.max(
      0,
      forms.findIndex(({ keys }) => keys.some(([key]) => key in secrets)),
    ),
  );
  const keys = forms[chosen.value]?.keys ?? [];
  const required = !kept || Object.values(secrets).some((text) => text !== "");
  const put = (key: string, text: string) => {
    const { [key]: _, ...others } = secrets;
    form.change({ secrets: text === "" ? others : { ...others, [key]: text } });
  };
  return (
    <fieldset>
      <legend>Secrets</legend>
      <p class={formLook.help}>
        {kept
          ? "Those that are stored stay, unless you enter all of them again. They are never shown."
          : "They are kept encrypted, and never shown again."}
      </p>
      {forms.length > 1 && (
        <ChoiceField
          form={form}
          path="form"
          label="It logs in by"
          value={String(chosen.value)}
          choices={forms.map(({ name }, at) => [String(at), name])}
          set={(at) => {
            chosen.value = Number(at);
            form.change({ secrets: {} });
          }}
        />
      )}
      {keys.map(([key, label, hidden]) => {
        const shared = {
          form,
          label,
          required,
          path: `secrets["${key}"]`,
          value: secrets[key] ?? "",
          set: (text: string) => put(key, text),
        };
        return hidden ? <SecretField key={key} {...shared} /> : <TextField key={key} {...shared} />;
      })}
    </fieldset>
  );
}
