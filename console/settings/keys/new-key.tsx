import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import { ApiKeySchema } from "#gen/belfry/tenants/v1/api_client_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { clientOf } from "../../data/calls.ts";
import { ChoiceField, TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import { useForm } from "../../form/form.ts";
import { FormEnd } from "../../form/outcome.tsx";

const clients = clientOf(ApiClientService);

const ends = [
  ["", "Never"],
  ["7", "In 7 days"],
  ["30", "In 30 days"],
  ["90", "In 90 days"],
  ["365", "In a year"],
] as const;

/** The form for one more key of a client. `made` gets the key itself. */
export function NewKey({ clientId, made }: { clientId: string; made(secret: string): void }) {
  const days = useSignal<(typeof ends)[number][0]>("");
  const stored = create(ApiKeySchema);
  const form = useForm(ApiKeySchema, {
    key: `key/${clientId}`,
    stored,
    prefix: "key",
    async send({ description }) {
      const expireTime = timestampFromMs(Date.now() + Number(days.value) * 86_400_000);
      const answer = await clients.createApiKey({
        clientId,
        key: { description, ...(days.value !== "" && { expireTime }) },
      });
      made(answer.secret);
      return stored;
    },
  });
  return (
    <form class={formLook.form} onSubmit={form.submit} aria-label="New key">
      <h2>New key</h2>
      <TextField
        form={form}
        path="description"
        label="Description"
        value={form.value.description}
        set={(description) => form.change({ description })}
      />
      <ChoiceField
        form={form}
        path="expireTime"
        label="Ends"
        value={days.value}
        choices={ends}
        set={(next) => {
          days.value = next;
        }}
      />
      <FormEnd form={form} schema={ApiKeySchema} send="Make a key" />
    </form>
  );
}
