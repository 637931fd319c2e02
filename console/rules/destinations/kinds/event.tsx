import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import type { EventDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { severities } from "../../../events/words.tsx";
import { ChoiceField } from "../../../form/fields.tsx";
import type { DestinationKind } from "./kind.ts";
import { TemplateField } from "./template-field.tsx";

export const event: DestinationKind<EventDestination> = {
  word: "Event in Belfry",
  about: "An open event on the entity of the event that caused it. It is closed when that is over.",
  testLeaves: "A test makes an event here, on an entity named belfry-test.",
  where: ({ nameTemplate }) => nameTemplate,
  Fields: ({ form, path, value, set }) => (
    <>
      <TemplateField
        form={form}
        path={`${path}.nameTemplate`}
        label="Name"
        value={value.nameTemplate}
        set={(nameTemplate) => set({ nameTemplate })}
      />
      <TemplateField
        form={form}
        path={`${path}.typeTemplate`}
        label="Type"
        value={value.typeTemplate}
        set={(typeTemplate) => set({ typeTemplate })}
      />
      <TemplateField
        form={form}
        path={`${path}.summaryTemplate`}
        label="Summary"
        value={value.summaryTemplate}
        set={(summaryTemplate) => set({ summaryTemplate })}
      />
      <ChoiceField
        form={form}
        path={`${path}.severity`}
        label="Severity"
        value={String(value.severity)}
        choices={[
          [String(Severity.DEFAULT), "Choose one"],
          ...severities
            .filter(({ value: each }) => each !== Severity.DEFAULT)
            .map(({ value: each, word }) => [String(each), word] as const),
        ]}
        set={(severity) => set({ severity: Number(severity) as Severity })}
      />
      <TemplateField
        form={form}
        path={`${path}.bodyTemplate`}
        label="Text"
        value={value.bodyTemplate}
        rows={4}
        empty="no text."
        set={(bodyTemplate) => set({ bodyTemplate })}
      />
    </>
  ),
};
