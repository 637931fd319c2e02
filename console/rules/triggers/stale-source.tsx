import { create } from "@bufbuild/protobuf";
import {
  type StaleDataSource,
  StaleDataSourceSchema,
  type TriggerSchema,
} from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { DurationField } from "../../form/duration-field.tsx";
import { TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import type { Form } from "../../form/form.ts";
import { EntityQueryField } from "./entity-query.tsx";
import { useEventNames, useMetricNames } from "./names.ts";
import { SourceErrors } from "./source-errors.tsx";

interface StaleFieldsProps {
  readonly form: Form<typeof TriggerSchema>;
  readonly source: StaleDataSource;
  set(source: StaleDataSource): void;
}

const path = "type.staleData";

/** What is missed, of which entities, and after how long. */
export function StaleFields({ form, source, set }: StaleFieldsProps) {
  const { metricName, eventName, entityQuery, durationSec } = source;
  const metricNames = useMetricNames(entityQuery?.clause);
  const eventNames = useEventNames();
  const put = (fields: Partial<StaleDataSource>) => {
    const { $typeName: _, entityQuery: query, ...rest } = { ...source, ...fields };
    set(create(StaleDataSourceSchema, { ...rest, ...(query && { entityQuery: query }) }));
  };
  return (
    <>
      <fieldset>
        <legend>What is missed</legend>
        <p class={formLook.help}>A metric, an event, or both; at least one of the two is needed.</p>
        <TextField
          form={form}
          path={`${path}.metricName`}
          label="Metric"
          suggestions={metricNames}
          value={metricName}
          set={(text) => put({ metricName: text })}
        />
        <TextField
          form={form}
          path={`${path}.eventName`}
          label="Event"
          suggestions={eventNames}
          value={eventName}
          set={(text) => put({ eventName: text })}
        />
        <SourceErrors form={form} path={path} label="What is missed" />
      </fieldset>
      <DurationField
        form={form}
        path={`${path}.durationSec`}
        label="Matches after this time without data"
        help="At most 400 days. It is over when data return."
        required
        value={durationSec === 0n ? undefined : Number(durationSec)}
        set={(seconds) => put({ durationSec: BigInt(seconds ?? 0) })}
      />
      <EntityQueryField
        form={form}
        path={`${path}.entityQuery`}
        query={entityQuery}
        set={(query) => put({ entityQuery: query })}
      />
    </>
  );
}
