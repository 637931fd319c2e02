import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import type { RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import formLook from "../../form/form.module.css";
import type { Form } from "../../form/form.ts";
import { MatcherRows } from "../../form/matcher-rows.tsx";
import { NamesField } from "../../form/names-field.tsx";
import { Problem } from "../../ui/problem.tsx";
import ui from "../../ui/ui.module.css";
import { offeredMax } from "./destinations.tsx";
import { MatchedNow, useMatched } from "./matched-now.tsx";

const triggers = clientOf(TriggerService);

type Way = "matchers" | "triggerNames";

const ways = [
  ["matchers", "By labels"],
  ["triggerNames", "By trigger"],
] as const;

/** Says which alerts a rule notifies of: matchers in front, and triggers, for what these cannot say, behind a tab. */
export function WhichAlerts({ form }: { form: Form<typeof RuleSchema> }) {
  const id = useId();
  const { matchers, triggerNames } = form.value;
  const chosen = useSignal<Way>(matchers.length === 0 && triggerNames.length > 0 ? "triggerNames" : "matchers");
  const tabs = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // What was refused is shown, whichever tab is open.
    const wrong = ways.find(([way]) => form.errorsAt(way).length > 0);
    if (wrong && form.errorsAt(chosen.peek()).length === 0) chosen.value = wrong[0];
  }, [form.failure]);
  const press = (event: KeyboardEvent) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    chosen.value = chosen.value === "matchers" ? "triggerNames" : "matchers";
    tabs.current?.querySelector<HTMLElement>(`[data-way="${chosen.value}"]`)?.focus();
  };
  return (
    <fieldset>
      <legend>Which alerts?</legend>
      <div ref={tabs} role="tablist" aria-label="How to say which alerts" class={ui.buttons}>
        {ways.map(([way, label]) => (
          <button
            key={way}
            type="button"
            role="tab"
            id={`${id}-${way}-tab`}
            data-way={way}
            aria-selected={chosen.value === way}
            aria-controls={`${id}-${way}`}
            tabIndex={chosen.value === way ? 0 : -1}
            onKeyDown={press}
            onClick={() => {
              chosen.value = way;
            }}
          >
            {label}
            {form.value[way].length > 0 && ` (${form.value[way].length})`}
          </button>
        ))}
      </div>
      {ways.map(([way]) => (
        <div
          key={way}
          id={`${id}-${way}`}
          role="tabpanel"
          aria-labelledby={`${id}-${way}-tab`}
          hidden={chosen.value !== way}
        >
          <div class={formLook.moreBody}>
            {way === "matchers" ? <ByLabels form={form} /> : <ByTrigger form={form} />}
          </div>
        </div>
      ))}
      {matchers.length > 0 && triggerNames.length > 0 && (
        <p class={ui.hint}>It notifies of what its labels match, and of what one of its triggers matches.</p>
      )}
    </fieldset>
  );
}

function ByLabels({ form }: { form: Form<typeof RuleSchema> }) {
  const { matchers } = form.value;
  const matched = useMatched(matchers);
  return (
    <>
      <p class={formLook.help}>
        All of them must hold. Case counts; <code>=~</code> compares the whole value with an expression. Any event has
        the labels alertname, which is its name, and severity.
      </p>
      <MatcherRows
        form={form}
        path="matchers"
        label="Matchers"
        value={matchers}
        mistakes={matched.mistakes}
        set={(next) => form.change({ matchers: next })}
      />
      {matchers.length > 0 && <MatchedNow {...matched} />}
    </>
  );
}

/** Triggers that exist, for what matchers cannot say. */
function ByTrigger({ form }: { form: Form<typeof RuleSchema> }) {
  const answer = useAnswer(async (signal) => {
    const { triggers: found, nextPageToken } = await triggers.listTriggers({ pageSize: offeredMax }, { signal });
    return { names: found.map(({ name }) => name), whole: nextPageToken === "" };
  });
  const { value, failure, again } = answer.value;
  return (
    <>
      <p class={formLook.help}>
        For what labels cannot say: fields of the entity, values of metrics, data that stay away, “or”. Any of the
        triggers is enough; of several that match, the first is named.
      </p>
      <NamesField
        form={form}
        path="triggerNames"
        label="Triggers"
        values={form.value.triggerNames}
        suggestions={value?.names ?? []}
        known={value?.whole ?? false}
        ordered
        set={(names) => form.change({ triggerNames: names })}
      />
      <p class={ui.hint}>
        {value?.names.length === 0 && "There is no trigger yet. "}
        <a href={linkTo(["rules", "triggers"], { new: "1" })}>Make a trigger</a>: what you have written here stays.
      </p>
      <Problem failure={failure} again={again} />
    </>
  );
}
