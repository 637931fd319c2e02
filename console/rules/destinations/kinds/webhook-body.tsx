import { useRef } from "preact/hooks";
import { type WebhookDestination, WebhookFormat } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { useAnswer } from "../../../data/answer.ts";
import { clientOf } from "../../../data/calls.ts";
import { useSettled } from "../../../data/settled.ts";
import { ChoiceField } from "../../../form/fields.tsx";
import { Problem } from "../../../ui/problem.tsx";
import rulesLook from "../../rules.module.css";
import { TemplateEditor } from "../../template-editor.tsx";
import type { KindProps } from "./kind.ts";

const rules = clientOf(RuleService);

const formats: readonly (readonly [WebhookFormat, string])[] = [
  [WebhookFormat.BELFRY, "Belfry's own"],
  [WebhookFormat.ALERTMANAGER, "Alertmanager"],
  [WebhookFormat.TEMPLATE, "Template"],
];

/** The form of the body, and the template that makes it. What was written comes back with its format. */
export function BodyFields(props: KindProps<WebhookDestination>) {
  const { form, path, value, set } = props;
  const written = useRef("");
  return (
    <>
      <ChoiceField
        form={form}
        path={`${path}.format`}
        label="Format"
        help="Alertmanager: version 4 of its webhook, for receivers that take that. Template: whatever JSON a receiver asks for."
        value={String(value.format || WebhookFormat.BELFRY)}
        choices={formats.map(([format, word]) => [String(format), word])}
        set={(chosen) => {
          const format = Number(chosen) as WebhookFormat;
          if (value.format === WebhookFormat.TEMPLATE) written.current = value.body;
          set({ format, body: format === WebhookFormat.TEMPLATE ? written.current : "" });
        }}
      />
      {value.format === WebhookFormat.TEMPLATE && <BodyField {...props} />}
    </>
  );
}

/** The template, with what it makes of a made-up group as it is typed. */
function BodyField({ form, path, value: { body }, set }: KindProps<WebhookDestination>) {
  const webhookBody = useSettled(body);
  const { value, failure, again } = useAnswer(
    (signal) => rules.previewMessage({ webhookBody, grouped: true }, { signal }),
    webhookBody,
  ).value;
  const mistake = failure?.fields.find(({ field }) => field === "webhookBody")?.description;
  const made = value?.previews[0];
  return (
    <>
      <TemplateEditor
        form={form}
        path={`${path}.body`}
        label="Body"
        help={
          <>
            A template that makes JSON: in quotes <code>{"{{event.name}}"}</code> is put in as text, elsewhere as a
            value; <code>{"{{#alerts}}…{{/alerts}}"}</code> is repeated for each alert.
          </>
        }
        required
        rows={12}
        value={body}
        tag={(name) => `{{${name}}}`}
        mistake={mistake}
        variables={value?.variables ?? []}
        set={(text) => set({ body: text })}
      />
      <Problem failure={mistake === undefined ? failure : undefined} again={again} />
      {made && (
        <section aria-label="Body of a group of three">
          <pre class={rulesLook.rendered}>{made.body}</pre>
        </section>
      )}
    </>
  );
}
