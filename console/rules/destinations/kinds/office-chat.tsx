import { create } from "@bufbuild/protobuf";
import { FactSchema, type OfficeChatDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { SecretField } from "../../../form/fields.tsx";
import type { DestinationKind } from "./kind.ts";
import { PairsField } from "./pairs-field.tsx";
import { TemplateField } from "./template-field.tsx";

const factsMax = 20;

export const officeChat: DestinationKind<OfficeChatDestination> = {
  word: "Microsoft Teams (officeChat)",
  about: "A card in a channel, over the channel's incoming webhook or a workflow.",
  where: () => "the channel of a stored webhook address",
  Fields: ({ form, path, value, set }) => (
    <>
      <SecretField
        form={form}
        path={`${path}.webhookUrl`}
        label="Webhook address"
        help="Of the channel: its menu, Workflows, “Post to a channel when a webhook request is received”. Whoever has it can write there, so it is a secret."
        required
        value={value.webhookUrl}
        set={(webhookUrl) => set({ webhookUrl })}
      />
      <TemplateField
        form={form}
        path={`${path}.text`}
        label="Text"
        value={value.text}
        rows={4}
        set={(text) => set({ text })}
      />
      <PairsField
        form={form}
        path={`${path}.facts`}
        label="Facts"
        help="Lines of a name and a value, which is a template. None: the card's own, such as entity and severity."
        item="fact"
        itemsMax={factsMax}
        pairs={value.facts.map(({ name, value: text }) => [name, text])}
        set={(pairs) => set({ facts: pairs.map(([name, text]) => create(FactSchema, { name, value: text })) })}
      />
    </>
  ),
};
