import type { WebhookDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { CheckField, SecretField, TextField } from "../../../form/fields.tsx";
import { HeadersField } from "./headers-field.tsx";
import type { DestinationKind, KindProps } from "./kind.ts";
import { BodyFields } from "./webhook-body.tsx";

/** Sent as the signing secret: the service makes one. */
export const madeSecret = "generate";

export const webhook: DestinationKind<WebhookDestination> = {
  word: "Webhook",
  about: "A POST with the message and what it is about as JSON, by Standard Webhooks.",
  where: ({ url, addressHint }) => addressHint || url,
  Fields: ({ form, path, value, stored, set }) => (
    <>
      <TextField
        form={form}
        path={`${path}.url`}
        label="Address"
        required
        placeholder="https://"
        help={
          stored?.addressHint
            ? `It leads to ${stored.addressHint}, and is a secret: ******** keeps it.`
            : "A template: {{event.name}} puts the event's name in as a part of the path or the query."
        }
        value={value.url}
        set={(url) => set({ url })}
      />
      <SigningSecret form={form} path={path} value={value} stored={stored} set={set} />
      <HeadersField
        form={form}
        path={`${path}.headers`}
        headers={value.headers}
        stored={stored?.headers ?? {}}
        set={(headers) => set({ headers })}
      />
      <BodyFields form={form} path={path} value={value} stored={stored} set={set} />
    </>
  ),
};

function SigningSecret({ form, path, value, stored, set }: KindProps<WebhookDestination>) {
  const wished = value.signingSecret === madeSecret;
  return (
    <>
      {!wished && (
        <SecretField
          form={form}
          path={`${path}.signingSecret`}
          label="Signing secret"
          help="By which the receiver knows that a request is ours: whsec_ and 24 to 64 bytes in base64; two of them, by a blank, while one is exchanged. None: requests are not signed."
          value={value.signingSecret}
          set={(signingSecret) => set({ signingSecret })}
        />
      )}
      <CheckField
        form={form}
        path={`${path}.made`}
        label="Have a signing secret made, which is shown once when this is saved"
        value={wished}
        set={(on) => set({ signingSecret: on ? madeSecret : (stored?.signingSecret ?? "") })}
      />
    </>
  );
}
