import { clone } from "@bufbuild/protobuf";
import { useMemo } from "preact/hooks";
import { RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { Problem } from "../../ui/problem.tsx";
import { ScreenHead } from "../../ui/screen-head.tsx";
import { blankRule } from "./blank-rule.ts";
import { RuleForm } from "./form.tsx";

const rules = clientOf(RuleService);

/** A new rule, or the copy of another one. A copy begins off, so that nothing is sent twice before it is changed. */
export function NewRule({ copied }: { copied: string }) {
  const answer = useAnswer(async (signal) => {
    if (copied === "") return blankRule();
    const { rule } = await rules.getRule({ name: copied }, { signal });
    const copy = clone(RuleSchema, rule ?? blankRule());
    return Object.assign(copy, { name: `${copied} copy`, enabled: false, etag: "", recentNotificationCount: 0n });
  });
  const { value, failure, again } = answer.value;
  const first = useMemo(() => value, [value !== undefined]);
  return (
    <>
      <ScreenHead
        title={copied === "" ? "New rule" : `Copy of ${copied}`}
        above={["Rules", linkTo(["rules", "rules"])]}
      />
      <Problem failure={failure} again={again} />
      {first && (
        <RuleForm
          draft={`rule/new/${copied}`}
          stored={first}
          isNew
          onSaved={({ name }) => goTo(linkTo(["rules", "rules", name]))}
        />
      )}
    </>
  );
}
