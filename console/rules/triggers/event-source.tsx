import { create } from "@bufbuild/protobuf";
import { type EventSource, EventSourceSchema, type TriggerSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { ClauseField } from "../../clause/clause-field.tsx";
import type { ClauseErrors } from "../../clause/conditions.tsx";
import { triggerClauses } from "../../clause/trigger-clause.ts";
import type { Form } from "../../form/form.ts";
import { MatchersField } from "../../form/matchers-field.tsx";

interface EventFieldsProps {
  readonly form: Form<typeof TriggerSchema>;
  readonly source: EventSource;
  /** What the preview found wrong. */
  readonly errors: ClauseErrors | undefined;
  set(source: EventSource): void;
}

/** The events that match. */
export function EventFields({ form, source, errors, set }: EventFieldsProps) {
  const matchers = source.query?.matchers ?? [];
  const fields = (
    <MatchersField
      form={form}
      path="type.event.query.matchers"
      label="Or, instead of conditions, when its labels match"
      value={matchers}
      set={(changed) => set(create(EventSourceSchema, { query: { matchers: changed } }))}
    />
  );
  if (matchers.length > 0) return fields;
  return (
    <>
      <ClauseField
        form={form}
        path="type.event.query.clause"
        label="An event matches when"
        help="Fields of the event, or, after entity., of its entity. Texts are compared without regard to case. A closed one matches only where a condition names status."
        language={triggerClauses}
        of="trigger"
        clause={source.query?.clause}
        errors={errors}
        set={(clause) => set(create(EventSourceSchema, { query: clause === undefined ? {} : { clause } }))}
      />
      {source.query?.clause === undefined && fields}
    </>
  );
}
