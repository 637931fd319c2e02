import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { useOne } from "../../data/one.ts";
import { may } from "../../data/session.ts";
import { AskFirst } from "../../ui/ask-first.tsx";
import { Problem } from "../../ui/problem.tsx";
import { ScreenHead } from "../../ui/screen-head.tsx";
import { Trouble } from "../../ui/trouble.tsx";
import ui from "../../ui/ui.module.css";
import { deleteRule, draftOf } from "./changes.ts";
import { RuleForm } from "./form.tsx";

const rules = clientOf(RuleService);

/** One rule: its form, what it says, and the ways to what it did. */
export function OneRule({ name }: { name: string }) {
  const answer = useOne("rule", async (signal) => (await rules.getRule({ name }, { signal })).rule);
  const { value, failure, again } = answer.value;
  return (
    <>
      <ScreenHead
        title={name}
        above={["Rules", linkTo(["rules", "rules"])]}
        tools={
          value && (
            <>
              <a href={linkTo(["deliveries"], { rule: name })}>
                Deliveries{" "}
                <span class={ui.quiet}>({value.recentNotificationCount.toLocaleString("en")} sent in 24 h)</span>
              </a>
              {may(RuleService.method.createRule) && (
                <a class={ui.button} href={linkTo(["rules", "rules"], { copy: name })}>
                  Duplicate
                </a>
              )}
              {may(RuleService.method.deleteRule) && (
                <AskFirst action="Delete" question={`Delete the rule "${name}"?`} act={() => deleteRule(name)}>
                  <p>Nothing else uses a rule. What waits to be sent by it is cancelled; its deliveries stay listed.</p>
                  <p>Its triggers and destinations stay.</p>
                </AskFirst>
              )}
            </>
          )
        }
      />
      <Problem failure={failure} again={again} />
      {value === null && <p class={ui.pad}>There is no rule of this name. It may have been deleted.</p>}
      <Trouble text={value?.trouble ?? ""} />
      {value && <RuleForm draft={draftOf(name)} stored={value} onSaved={again} />}
    </>
  );
}
