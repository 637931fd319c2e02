import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { address, linkTo, setParameters } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { oneOrNull } from "../../data/one-or-null.ts";
import { may } from "../../data/session.ts";
import { ScreenHead } from "../../ui/screen-head.tsx";
import ui from "../../ui/ui.module.css";
import { DestinationForm } from "../destinations/form.tsx";
import { blankRule } from "../rules/blank-rule.ts";
import { RuleForm } from "../rules/form.tsx";
import rulesLook from "../rules.module.css";
import { TriggerForm } from "../triggers/form.tsx";
import { blankTrigger } from "../triggers/new.tsx";
import { DestinationTest } from "./destination-test.tsx";
import { ExistingNames } from "./existing.tsx";
import { RealEvent } from "./real-event.tsx";

const triggers = clientOf(TriggerService);
const destinations = clientOf(DestinationService);
const rules = clientOf(RuleService);

/** What was chosen or made so far, which the address keeps. */
const parameter = (name: "trigger" | "destination" | "rule") => address.value.parameters.get(name) ?? "";

/** Trigger, destination, rule and test, one after the other on one page. */
export function Guide() {
  const [trigger, destination, rule] = [parameter("trigger"), parameter("destination"), parameter("rule")];
  useForgetDeleted();
  const at = trigger === "" ? 1 : destination === "" ? 2 : rule === "" ? 3 : 4;
  return (
    <>
      <ScreenHead title="Your first rule, in four steps" above={["Rules", linkTo(["rules", "rules"])]} />
      <ol class={`${rulesLook.guide} ${ui.scroll}`}>
        <Step number={1} at={at} title="Condition" of="triggers" chosen={trigger} clear={["trigger", "rule"]}>
          <TriggerStep />
        </Step>
        <Step
          number={2}
          at={at}
          title="Where it goes"
          of="destinations"
          chosen={destination}
          clear={["destination", "rule"]}
        >
          <DestinationStep />
        </Step>
        <Step number={3} at={at} title="The rule that joins them" of="rules" chosen={rule} clear={["rule"]}>
          <RuleStep trigger={trigger} destination={destination} />
        </Step>
        <Step number={4} at={at} title="Try it" of="" chosen="" clear={[]}>
          <DestinationTest name={destination} />
          <RealEvent rule={rule} trigger={trigger} />
          <p>
            <a href={linkTo(["rules", "rules", rule])}>Open the rule</a>
          </p>
        </Step>
      </ol>
    </>
  );
}

/** Gives up what was chosen and has been deleted since, as by an Undo: each step looks as it opens. */
function useForgetDeleted(): void {
  useAnswer(async (signal) => {
    if (address.value.path[1] !== "guide") return;
    const [trigger, destination, rule] = [parameter("trigger"), parameter("destination"), parameter("rule")];
    const [foundTrigger, foundDestination, foundRule] = await Promise.all([
      trigger === "" || oneOrNull(triggers.getTrigger({ name: trigger }, { signal })),
      destination === "" || oneOrNull(destinations.getDestination({ name: destination }, { signal })),
      rule === "" || oneOrNull(rules.getRule({ name: rule }, { signal })),
    ]);
    const deleted = [
      ...(foundTrigger === null ? ["trigger", "rule"] : []),
      ...(foundDestination === null ? ["destination", "rule"] : []),
      ...(foundRule === null ? ["rule"] : []),
    ];
    if (deleted.length === 0 || signal.aborted) return;
    setParameters(Object.fromEntries(deleted.map((name) => [name, undefined])), false);
  });
}

interface StepProps {
  readonly number: number;
  /** The step that is open. */
  readonly at: number;
  readonly title: string;
  /** The section of what it chooses. */
  readonly of: string;
  readonly chosen: string;
  /** The parameters that are given up when another one is chosen. */
  readonly clear: readonly string[];
  readonly children: ComponentChildren;
}

function Step({ number, at, title, of, chosen, clear, children }: StepProps) {
  const state = number === at ? "open" : number < at ? "done" : "to come";
  return (
    <li class={ui.card} aria-current={state === "open" ? "step" : undefined}>
      <h2>
        {number}. {title}{" "}
        <span class={ui.state} data-tone={state === "done" ? "good" : "quiet"}>
          {state === "done" ? "✓ done" : ""}
        </span>
      </h2>
      {state === "done" && (
        <p>
          <a href={linkTo(["rules", of, chosen])}>{chosen}</a>{" "}
          <button
            type="button"
            class={ui.plain}
            aria-label={`Choose again: ${title}`}
            onClick={() => setParameters(Object.fromEntries(clear.map((name) => [name, undefined])))}
          >
            Choose again
          </button>
        </p>
      )}
      {state === "open" && children}
    </li>
  );
}

function TriggerStep() {
  const first = useMemo(blankTrigger, []);
  const choose = (name: string) => setParameters({ trigger: name });
  return (
    <>
      <p>A trigger says which events, values of metrics or missing data count.</p>
      <ExistingNames
        label="Use an existing trigger"
        read={async (signal) => {
          const page = await triggers.listTriggers({ pageSize: 1000 }, { signal });
          return page.triggers.map(({ name }) => name);
        }}
        choose={choose}
        or={may(TriggerService.method.createTrigger) && "Or make one"}
      />
      {may(TriggerService.method.createTrigger) && (
        <TriggerForm draft="guide/trigger" stored={first} isNew saved={({ name }) => choose(name)} />
      )}
    </>
  );
}

function DestinationStep() {
  const choose = (name: string) => setParameters({ destination: name });
  return (
    <>
      <p>A destination says where notifications go: an e-mail address, a chat, a paging service, a webhook.</p>
      <ExistingNames
        label="Use an existing destination"
        read={async (signal) => {
          const page = await destinations.listDestinations({ pageSize: 1000 }, { signal });
          return page.destinations.map(({ name }) => name);
        }}
        choose={choose}
        or={may(DestinationService.method.createDestination) && "Or make one"}
      />
      {may(DestinationService.method.createDestination) && <DestinationForm onSaved={({ name }) => choose(name)} />}
    </>
  );
}

function RuleStep({ trigger, destination }: { trigger: string; destination: string }) {
  const first = useMemo(
    () => Object.assign(blankRule(), { triggerNames: [trigger], destinationNames: [destination] }),
    [trigger, destination],
  );
  const choose = (name: string) => setParameters({ rule: name });
  return (
    <>
      <p>A rule joins the two, and says with which words and how often you are notified.</p>
      <ExistingNames
        label="Use a rule that already connects them"
        read={async (signal) => {
          const asked = { triggerNames: [trigger], destinationNames: [destination], pageSize: 1000 };
          const page = await rules.listRules(asked, { signal });
          return page.rules
            .filter((rule) => rule.triggerNames.includes(trigger) && rule.destinationNames.includes(destination))
            .map(({ name }) => name);
        }}
        choose={choose}
      />
      {may(RuleService.method.createRule) && (
        <RuleForm
          draft={`guide/rule/${trigger}/${destination}`}
          stored={first}
          isNew
          onSaved={({ name }) => choose(name)}
        />
      )}
    </>
  );
}
