import type { EmailDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { TextField } from "../../../form/fields.tsx";
import { NamesField } from "../../../form/names-field.tsx";
import type { DestinationKind } from "./kind.ts";
import { TemplateField } from "./template-field.tsx";

export const email: DestinationKind<EmailDestination> = {
  word: "E-mail",
  about:
    "A mail to each address, over the mail relay that the operator has set. What follows about the same match answers it.",
  where: ({ to }) => to,
  Fields: ({ form, path, value, set }) => (
    <>
      <TextField
        form={form}
        path={`${path}.to`}
        label="To"
        value={value.to}
        required
        help="One address, without a name."
        set={(to) => set({ to })}
      />
      <NamesField
        form={form}
        path={`${path}.alsoTo`}
        label="Further addresses"
        values={value.alsoTo}
        help="Up to 19. Each gets a mail of its own."
        set={(alsoTo) => set({ alsoTo })}
      />
      <TemplateField
        form={form}
        path={`${path}.subject`}
        label="Subject"
        value={value.subject}
        empty="the event's headline and entity."
        set={(subject) => set({ subject })}
      />
      <TemplateField
        form={form}
        path={`${path}.body`}
        label="Text"
        value={value.body}
        rows={5}
        empty="the message of the rule, and a table of facts. HTML when it begins with a tag."
        set={(body) => set({ body })}
      />
    </>
  ),
};
