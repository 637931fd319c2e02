import { create } from "@bufbuild/protobuf";
import {
  type MetricThresholdSource,
  MetricThresholdSourceSchema,
  type TriggerSchema,
} from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { ClauseField } from "../../clause/clause-field.tsx";
import { labelClauses } from "../../clause/search-clause.ts";
import { NumberField, TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import type { Form } from "../../form/form.ts";
import { EntityQueryField } from "./entity-query.tsx";
import { useMetricNames } from "./names.ts";
import { SourceErrors } from "./source-errors.tsx";

interface MetricFieldsProps {
  readonly form: Form<typeof TriggerSchema>;
  readonly source: MetricThresholdSource;
  set(source: MetricThresholdSource): void;
}

const path = "type.metricThreshold";

/** The metric, its bounds, and the series that count. */
export function MetricFields({ form, source, set }: MetricFieldsProps) {
  const { metricName, min, max, entityQuery, metricClause } = source;
  const names = useMetricNames(entityQuery?.clause);
  const put = (fields: Partial<MetricThresholdSource>) => {
    const next = { ...source, ...fields };
    // Undefined members are left out: a bound that is emptied is no bound.
    set(
      create(
        MetricThresholdSourceSchema,
        Object.fromEntries(
          Object.entries(next).filter(([name, value]) => value !== undefined && !name.startsWith("$")),
        ),
      ),
    );
  };
  return (
    <>
      <TextField
        form={form}
        path={`${path}.metricName`}
        label="Metric"
        help="Its whole name. Names of the dictionary are offered, and those that the entities send."
        required
        suggestions={names}
        value={metricName}
        set={(text) => put({ metricName: text })}
      />
      <fieldset>
        <legend>Good values</legend>
        <p class={formLook.help}>
          A series matches while its last value lies outside. At least one of the two is needed.
        </p>
        <div class={formLook.inARow}>
          <NumberField
            form={form}
            path={`${path}.min`}
            label="Lowest good value"
            value={min}
            set={(value) => put({ min: value })}
          />
          <NumberField
            form={form}
            path={`${path}.max`}
            label="Highest good value"
            value={max}
            set={(value) => put({ max: value })}
          />
        </div>
        <SourceErrors form={form} path={path} label="Good values" />
      </fieldset>
      <EntityQueryField
        form={form}
        path={`${path}.entityQuery`}
        query={entityQuery}
        set={(query) => put({ entityQuery: query })}
      />
      <ClauseField
        form={form}
        path={`${path}.metricClause`}
        label="Series that count"
        help="By their labels, as in labels.core. Without a condition: all."
        language={labelClauses}
        of="series"
        clause={metricClause}
        set={(clause) => put({ metricClause: clause })}
      />
    </>
  );
}
