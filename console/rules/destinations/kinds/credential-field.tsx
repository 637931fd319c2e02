import { useComputed } from "@preact/signals";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import type { DestinationSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { linkTo } from "../../../data/address.ts";
import { useAnswer } from "../../../data/answer.ts";
import { clientOf } from "../../../data/calls.ts";
import { may } from "../../../data/session.ts";
import { ChoiceField } from "../../../form/fields.tsx";
import type { Form } from "../../../form/form.ts";

const credentials = clientOf(CredentialService);

interface CredentialProps {
  readonly form: Form<typeof DestinationSchema>;
  readonly path: string;
  readonly label: string;
  /** The type of credentials that fit. */
  readonly type: string;
  /** What stands here when none is chosen. */
  readonly none: string;
  /** The chosen one's id; empty for none. */
  readonly value: string;
  set(id: string): void;
}

/** Which stored credential holds the secret, or that it is written here. */
export function CredentialField({ form, path, label, type, none, value, set }: CredentialProps) {
  const answer = useAnswer(async (signal) =>
    may(CredentialService.method.listCredentials)
      ? (await credentials.listCredentials({ pageSize: 1000 }, { signal })).credentials
      : [],
  );
  const fitting = useComputed(() => (answer.value.value ?? []).filter(({ info }) => info?.type === type));
  const choices = fitting.value.map(({ id, info }) => [id, info?.name ?? id] as const);
  const known = value === "" || choices.some(([id]) => id === value);
  return (
    <ChoiceField
      form={form}
      path={path}
      label={label}
      value={value}
      choices={[["", none], ...choices, ...(known ? [] : [[value, `the stored credential ${value}`] as const])]}
      help={
        may(CredentialService.method.createCredential) && (
          <>
            A stored credential serves many destinations and is changed in one place:{" "}
            <a href={linkTo(["settings", "credentials"], { new: type })}>store another one</a>.
          </>
        )
      }
      set={set}
    />
  );
}
