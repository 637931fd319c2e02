import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
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
import { DestinationTest } from "./destination-test.tsx";
import { ExistingNames } from "./existing.tsx";
import { RealEvent } from "./real-event.tsx";

const destinations = clientOf(DestinationService);
const rules = clientOf(RuleService);

/** What was chosen or made so far, which the address keeps. */
const parameter = (name: "destination" | "rule") => address.value.parameters.get(name) ?? "";

/** Destination, rule and test, one after the other on one page. */
export function Guide() {
  const [destination, rule] = [parameter("destination"), parameter("rule")];
  useForgetDeleted();
  const at = destination === "" ? 1 : rule === "" ? 2 : 3;
  return (
    <>
      <ScreenHead title="Your first rule, in three steps" above={["Rules", linkTo(["rules", "rules"])]} />
      <ol class={`${rulesLook.guide} ${ui.scroll}`}>
        <Step
          number={1}
          at={at}
          title="Where it goes"
          of="destinations"
          chosen={destination}
          clear={["destination", "rule"]}
        >
          <DestinationStep />
        </Step>
        <Step number={2} at={at} title="Which alerts go there" of="rules" chosen={rule} clear={["rule"]}>
          <RuleStep destination={destination} />
        </Step>
        <Step number={3} at={at} title="Try it" of="" chosen="" clear={[]}>
          <DestinationTest name={destination} />
          <RealEvent rule={rule} />
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
    const [destination, rule] = [parameter("destination"), parameter("rule")];
    const [foundDestination, foundRule] = await Promise.all([
      destination === "" || oneOrNull(destinations.getDestination({ name: destination }, { signal })),
      rule === "" || oneOrNull(rules.getRule({ name: rule }, { signal })),
    ]);
    const deleted = [
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

function RuleStep({ destination }: { destination: string }) {
  const first = useMemo(() => Object.assign(blankRule(), { destinationNames: [destination] }), [destination]);
  const choose = (name: string) => setParameters({ rule: name });
  return (
    <>
      <p>A rule says which alerts go there, with which words and how often.</p>
      <ExistingNames
        label="Use a rule that already sends there"
        read={async (signal) => {
          const page = await rules.listRules({ destinationNames: [destination], pageSize: 1000 }, { signal });
          return page.rules
            .filter(({ destinationNames }) => destinationNames.includes(destination))
            .map(({ name }) => name);
        }}
        choose={choose}
        or={may(RuleService.method.createRule) && "Or make one"}
      />
      {may(RuleService.method.createRule) && (
        <RuleForm draft={`guide/rule/${destination}`} stored={first} isNew onSaved={({ name }) => choose(name)} />
      )}
    </>
  );
}
