import { type Rule, RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { may } from "../../data/session.ts";
import { AboutFields } from "../../form/about-fields.tsx";
import { DurationField } from "../../form/duration-field.tsx";
import { CheckField, TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import { type Form, useForm } from "../../form/form.ts";
import { MoreFields } from "../../form/more-fields.tsx";
import { FormEnd } from "../../form/outcome.tsx";
import ui from "../../ui/ui.module.css";
import { hasMore } from "./blank-rule.ts";
import { changeRule, createRule } from "./changes.ts";
import { DestinationsField } from "./destinations.tsx";
import { GroupingFields } from "./grouping.tsx";
import { MessageField } from "./message.tsx";
import { MessagePreview } from "./preview.tsx";
import { usePreview } from "./rendering.ts";
import { RepetitionFields } from "./repetition.tsx";
import { WhichAlerts } from "./which-alerts.tsx";
import { RuleInWords } from "./words.tsx";

interface RuleFormProps {
  /** What distinguishes its unsent text from that of others. */
  readonly draft: string;
  readonly stored: Rule;
  readonly isNew?: boolean;
  onSaved(rule: Rule): void;
}

/** Writes a rule, with what it does in words and what its message says beside it. */
export function RuleForm({ draft, stored, isNew = false, onSaved }: RuleFormProps) {
  const form: Form<typeof RuleSchema> = useForm(RuleSchema, {
    key: draft,
    stored,
    prefix: "rule",
    send: (rule) => (isNew ? createRule(rule) : changeRule(rule, form.stored, () => onSaved(stored))),
    done: onSaved,
  });
  const { value } = form;
  const preview = usePreview(value);
  const allowed = may(RuleService.method[isNew ? "createRule" : "updateRule"]);
  return (
    <div class={`${ui.beside} ${ui.scroll}`}>
      <form class={formLook.form} onSubmit={form.submit} aria-label={isNew ? "New rule" : "Rule"}>
        <section class={ui.card} aria-label="The rule in words" aria-live="polite">
          <RuleInWords rule={value} />
        </section>
        <fieldset class={formLook.plainSet} disabled={!allowed}>
          {isNew && (
            <TextField
              form={form}
              path="name"
              label="Name"
              help="It cannot be changed later."
              required
              value={value.name}
              set={(name) => form.change({ name })}
            />
          )}
          <CheckField
            form={form}
            path="enabled"
            label="On"
            help="A rule that is off sends nothing."
            value={value.enabled}
            set={(enabled) => form.change({ enabled })}
          />
          <WhichAlerts form={form} />
          <DestinationsField
            form={form}
            path="destinationNames"
            names={value.destinationNames}
            set={(destinationNames) => form.change({ destinationNames })}
          />
          <CheckField
            form={form}
            path="sendUpdates"
            label="Notify when it is acknowledged, changes in severity or is over"
            value={value.sendUpdates}
            set={(sendUpdates) => form.change({ sendUpdates })}
          />
          <MessageField form={form} preview={preview} />
          <MoreFields said={hasMore(value)}>
            <DurationField
              form={form}
              path="delaySec"
              label="Wait before the first notification"
              help="It is sent if the alert still matches then. Empty: at once; a day at most."
              value={Number(value.delaySec) || undefined}
              set={(seconds) => form.change({ delaySec: BigInt(seconds ?? 0) })}
            />
            <GroupingFields form={form} />
            <RepetitionFields form={form} />
            <CheckField
              form={form}
              path="muteDuringMaintenance"
              label="Keep silent about entities in maintenance"
              help="What still matches when the window ends is notified then."
              value={value.muteDuringMaintenance}
              set={(muteDuringMaintenance) => form.change({ muteDuringMaintenance })}
            />
            <AboutFields form={form} about={value} />
          </MoreFields>
        </fieldset>
        {allowed && <FormEnd form={form} schema={RuleSchema} send={isNew ? "Create the rule" : "Save"} />}
      </form>
      <MessagePreview rule={value} isStored={!isNew} preview={preview} />
    </div>
  );
}
