import {
  DeliveryService,
  DeliveryStatus,
  ExplainNotificationResponse_Outcome as Outcome,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import type { ExplanationStep } from "#gen/belfry/notifications/v1/explanation_pb.ts";
import { linkTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { authorText } from "../silences/author.ts";
import { Problem } from "../ui/problem.tsx";
import { nowMs, Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { statusWords } from "./card.tsx";
import deliveriesLook from "./deliveries.module.css";

const deliveries = clientOf(DeliveryService);

export const outcomes: Readonly<Record<Outcome, string>> = {
  [Outcome.OUTCOME_UNSPECIFIED]: "",
  [Outcome.NOTIFIED]: "A notification was sent.",
  [Outcome.WAITING]: "A notification waits.",
  [Outcome.MUTED]: "The rule keeps silent: the entity is in maintenance.",
  [Outcome.SUPPRESSED]: "The rule has nothing to add for now.",
  [Outcome.CANCELLED]: "What was decided did not go out.",
  [Outcome.NOT_MATCHED]: "No trigger of the rule matches.",
  [Outcome.SILENCED]: "A silence holds it.",
  [Outcome.RULE_DISABLED]: "The rule is disabled, or names no destination.",
};

/** Returns the word and the look of a step's result: red for a fault such as a failed delivery; a rule that stops is in order. */
function resultWords(result: string) {
  const words = {
    passed: ["passed", "✓", "good"],
    stopped: ["stopped", "–", "quiet"],
    waiting: ["waiting", "○", "info"],
  };
  const [word, sign, tone] = words[result as keyof typeof words] ?? [];
  if (word !== undefined) return { word, sign, tone };
  const delivered = statusWords[DeliveryStatus[result as keyof typeof DeliveryStatus]];
  return delivered === undefined ? { word: result, sign: "·" } : { ...delivered, word: delivered.word.toLowerCase() };
}

type About = { case: "occurrenceId" | "subject"; value: string };

/** Shows a rule's decision step by step, in the server's words. */
export function Explanation({ rule, about }: { rule: string; about: About }) {
  const answer = useAnswer((signal) => {
    // Silences, windows and delays end without a call of this page.
    nowMs.value;
    return deliveries.explainNotification({ name: rule, about }, { signal });
  });
  const { value, loading, failure, again } = answer.value;
  return (
    <div class={deliveriesLook.explanation} aria-live="polite" aria-busy={loading}>
      <Problem failure={failure} again={again} />
      {value && (
        <>
          <p class={deliveriesLook.outcome}>{outcomes[value.outcome]}</p>
          <Steps steps={value.steps} />
        </>
      )}
    </div>
  );
}

/** The steps of a decision, in the server's words. */
export function Steps({ steps }: { steps: readonly ExplanationStep[] }) {
  return (
    <ol class={ui.steps}>
      {steps.map((step, at) => {
        const { word, sign, tone } = resultWords(step.result);
        return (
          <li key={`${at} ${step.step}`}>
            <p>
              <span class={ui.state} data-tone={tone}>
                <span aria-hidden="true">{sign}</span> {step.step} {word}
              </span>
            </p>
            <p>{step.reason}</p>
            {step.path && <code>{step.path}</code>}
            <StepLinks step={step} />
            {(step.time || step.untilTime) && (
              <p class={ui.hint}>
                {step.time && <Time at={step.time} />}
                {step.untilTime && (
                  <>
                    {" "}
                    until <Time at={step.untilTime} due />
                  </>
                )}
              </p>
            )}
          </li>
        );
      })}
    </ol>
  );
}

/** The window or the silence by which a step was decided. */
export function StepLinks({ step: { window, silenceId, comment, author, createdBy } }: { step: ExplanationStep }) {
  return (
    <>
      {window && (
        <p>
          Window: <a href={linkTo(["windows"], { text: window })}>{window}</a>
        </p>
      )}
      {silenceId && (
        <p>
          Silence: <a href={linkTo(["silences"], { id: silenceId })}>{comment}</a> by {authorText(author, createdBy)}
        </p>
      )}
    </>
  );
}
