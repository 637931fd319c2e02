import { useSignal } from "@preact/signals";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { Explanation } from "../deliveries/explanation.tsx";
import { Problem } from "../ui/problem.tsx";
import ui from "../ui/ui.module.css";

const rules = clientOf(RuleService);

/** Shows why people were or were not notified, rule by rule, as the server explains it. */
export function WhyNot({ occurrenceId }: { occurrenceId: string }) {
  const answer = useAnswer((signal) => rules.listRules({ pageSize: 1000 }, { signal }));
  const chosen = useSignal("");
  const { value, failure, again } = answer.value;
  const names = value?.rules.map(({ name }) => name) ?? [];
  const rule = chosen.value || names[0] || "";
  return (
    <section class={ui.card} aria-labelledby="why">
      <h2 id="why">Why was I (not) notified?</h2>
      <Problem failure={failure} again={again} />
      {value && names.length === 0 && (
        <p class={ui.quiet}>There is no rule: nothing is ever sent. A rule ties triggers to destinations.</p>
      )}
      {names.length > 0 && (
        <>
          <label class={ui.inline}>
            Rule
            <select
              value={rule}
              onChange={({ currentTarget }) => {
                chosen.value = currentTarget.value;
              }}
            >
              {names.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <Explanation key={rule} rule={rule} about={{ case: "occurrenceId", value: occurrenceId }} />
        </>
      )}
    </section>
  );
}
