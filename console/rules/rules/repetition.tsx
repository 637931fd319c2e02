import { RepeatWhile, type Rule, type RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { DurationField } from "../../form/duration-field.tsx";
import { ChoiceField, FieldErrors } from "../../form/fields.tsx";
import type { Form } from "../../form/form.ts";

/** The ways to repeat, each as the two fields of a rule that say it. */
const ways = {
  never: { repeat: false, repeatWhile: RepeatWhile.UNSPECIFIED },
  reports: { repeat: true, repeatWhile: RepeatWhile.UNSPECIFIED },
  open: { repeat: true, repeatWhile: RepeatWhile.OPEN },
  unacknowledged: { repeat: true, repeatWhile: RepeatWhile.UNACKNOWLEDGED },
} as const;

type Way = keyof typeof ways;

const words: readonly (readonly [Way, string])[] = [
  ["never", "never"],
  ["reports", "with reports that come later"],
  ["open", "by the clock, while it is open"],
  ["unacknowledged", "by the clock, until it is acknowledged or closed"],
];

function wayOf({ repeat, repeatWhile }: Rule): Way {
  if (!repeat) return "never";
  return words.find(([way]) => ways[way].repeat && ways[way].repeatWhile === repeatWhile)?.[0] ?? "reports";
}

/** Whether it notifies again while a match lasts, and how often. */
export function RepetitionFields({ form }: { form: Form<typeof RuleSchema> }) {
  const { repeat, repeatInterval } = form.value;
  const way = wayOf(form.value);
  return (
    <>
      <ChoiceField
        form={form}
        path="repeat"
        label="Notify again"
        value={way}
        choices={words}
        set={(next) => form.change(ways[next])}
      />
      <FieldErrors form={form} path="repeatWhile" label="Notify again" />
      {repeat && (
        <DurationField
          form={form}
          path="repeatInterval"
          label="Every"
          help={
            way === "reports"
              ? "Reports within this time after a notification are silent. 0: every report notifies."
              : "At least a second."
          }
          required
          value={repeatInterval === undefined ? undefined : Number(repeatInterval)}
          set={(seconds) => form.change({ repeatInterval: seconds === undefined ? undefined : BigInt(seconds) })}
        />
      )}
    </>
  );
}
