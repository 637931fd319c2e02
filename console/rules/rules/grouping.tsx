import { create } from "@bufbuild/protobuf";
import {
  type Grouping,
  GroupingSchema,
  RepeatWhile,
  type Rule,
  type RuleSchema,
} from "#gen/belfry/notifications/v1/rule_pb.ts";
import { DurationField } from "../../form/duration-field.tsx";
import { CheckField, FieldErrors } from "../../form/fields.tsx";
import type { Form } from "../../form/form.ts";
import { NamesField } from "../../form/names-field.tsx";

const usual = { by: ["alertname"], waitSec: 30n, intervalSec: 300n };

/** What begins groups: repetitions by reports have no meaning for one, so they follow the clock. */
function begun({ repeat, repeatWhile }: Rule): Partial<Rule> {
  const grouping = create(GroupingSchema, usual);
  return repeat && repeatWhile === RepeatWhile.UNSPECIFIED ? { grouping, repeatWhile: RepeatWhile.OPEN } : { grouping };
}

/** Whether many matches are one message, and when that is sent. */
export function GroupingFields({ form }: { form: Form<typeof RuleSchema> }) {
  const { grouping } = form.value;
  const change = (fields: Partial<Grouping>) =>
    grouping && form.change({ grouping: create(GroupingSchema, { ...grouping, ...fields }) });
  return (
    <>
      <CheckField
        form={form}
        path="grouping"
        label="Group what has the same labels"
        help="One message for all of it. Otherwise each match is notified by itself."
        value={grouping !== undefined}
        set={(grouped) => form.change(grouped ? begun(form.value) : { grouping: undefined })}
      />
      {grouping && (
        <>
          <NamesField
            form={form}
            path="grouping.by"
            label="Labels that a group shares"
            help="Such as alertname and cluster. Enter adds one; none: one message for the whole rule; ... alone: all labels."
            values={grouping.by}
            set={(by) => change({ by })}
          />
          <DurationField
            form={form}
            path="grouping.waitSec"
            label="Gather for"
            help="An hour at most."
            required
            value={grouping.waitSec === undefined ? undefined : Number(grouping.waitSec)}
            set={(seconds) => change({ waitSec: BigInt(seconds ?? 0) })}
          />
          <DurationField
            form={form}
            path="grouping.intervalSec"
            label="Then at most every"
            help="A day at most. What changes meanwhile is in the next one."
            required
            value={grouping.intervalSec === undefined ? undefined : Number(grouping.intervalSec)}
            set={(seconds) => change({ intervalSec: BigInt(seconds ?? 0) })}
          />
          <FieldErrors form={form} path="repeatWhile" label="Notify again" />
        </>
      )}
    </>
  );
}
