import {
  DeliveryService,
  DeliveryStatus,
  ExplainNotificationResponse_Outcome as Outcome,
  type RuleExplanation,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { useNews } from "../data/news.ts";
import { DeliveryCard } from "../deliveries/card.tsx";
import { outcomes, StepLinks, Steps } from "../deliveries/explanation.tsx";
import { silenceChanges } from "../silences/changes.ts";
import { useAskAgain } from "../ui/ask-again.ts";
import { Problem } from "../ui/problem.tsx";
import ui from "../ui/ui.module.css";
import occurrenceLook from "./occurrence.module.css";

const deliveries = clientOf(DeliveryService);
const rulesMax = 100;
/** The shortest time between two questions while the occurrence changes. */
const askAgainMs = 1000;

/** Rules that have nothing to do with an occurrence: they stand folded, below the others. */
const apart: readonly Outcome[] = [Outcome.NOT_MATCHED, Outcome.RULE_DISABLED];

const signs: Readonly<Partial<Record<Outcome, readonly [sign: string, tone: string]>>> = {
  [Outcome.NOTIFIED]: ["✓", "good"],
  [Outcome.WAITING]: ["○", "info"],
  [Outcome.SILENCED]: ["◌", "quiet"],
};

/** Shows who was notified of an occurrence and what came back, rule by rule, and why others were not. */
export function WhoWasNotified({ occurrenceId, eventId }: { occurrenceId: string; eventId: string }) {
  const news = useNews(askAgainMs, eventId);
  const answer = useAnswer(
    (signal) => {
      news.value;
      silenceChanges.value;
      return deliveries.explainOccurrence({ id: occurrenceId, limit: rulesMax }, { signal });
    },
    occurrenceId,
    "notified",
  );
  const { value, loading, failure, again } = answer.value;
  // What waits goes out, and what is held back is released, without news of the occurrence.
  useAskAgain(again, value?.rules.some(isUnsettled) ?? false);
  const near = value?.rules.filter(({ outcome }) => !apart.includes(outcome)) ?? [];
  const far = value?.rules.filter(({ outcome }) => apart.includes(outcome)) ?? [];
  const others = value?.outcomes.filter(({ outcome }) => apart.includes(outcome)) ?? [];
  const otherCount = others.reduce((sum, { count }) => sum + Number(count), 0);
  const unlisted = Number(value?.totalCount ?? 0n) - (value?.rules.length ?? 0);
  return (
    <section class={ui.card} aria-labelledby="notified" aria-busy={loading}>
      <h2 id="notified">Who was notified</h2>
      <Problem failure={failure} again={again} />
      {value && value.totalCount === 0n && (
        <p class={ui.quiet}>
          Nobody: there is no rule, so nothing is ever sent.{" "}
          <a href={linkTo(["rules", "guide"])}>Make the first rule</a>
        </p>
      )}
      {value && value.totalCount > 0n && near.length === 0 && <p>Nobody: no rule applies to it.</p>}
      <ul class={occurrenceLook.cards}>
        {near.map((each) => (
          <li key={each.rule}>
            <OneRule explained={each} changed={again} />
          </li>
        ))}
      </ul>
      {far.length > 0 && (
        <details>
          <summary>
            {otherCount.toLocaleString("en")} {otherCount === 1 ? "rule does" : "rules do"} not apply
          </summary>
          <ul class={occurrenceLook.cards}>
            {far.map((each) => (
              <li key={each.rule}>
                <OneRule explained={each} changed={again} />
              </li>
            ))}
          </ul>
        </details>
      )}
      {unlisted > 0 && <p class={ui.hint}>{unlisted.toLocaleString("en")} more rules are not listed.</p>}
      {near.some((each) => each.deliveries.length > 0) && (
        <p>
          <a href={linkTo(["deliveries"], { eventId: occurrenceId })}>All deliveries of it</a>
        </p>
      )}
    </section>
  );
}

/** Outcomes, and states of deliveries, that time or other people change. */
const unsettled: readonly Outcome[] = [Outcome.WAITING, Outcome.SILENCED, Outcome.MUTED];
const undecided: readonly DeliveryStatus[] = [DeliveryStatus.PENDING, DeliveryStatus.HELD];

const isUnsettled = ({ outcome, deliveries: made }: RuleExplanation) =>
  unsettled.includes(outcome) || made.some(({ status }) => undecided.includes(status));

/** One rule: what it sent where and what came back, or why it sent nothing. */
function OneRule({ explained, changed }: { explained: RuleExplanation; changed(): void }) {
  const { rule, outcome, steps, deliveries: made } = explained;
  const failed = made.some(({ status }) => status === DeliveryStatus.FAILED);
  const [sign, tone] = failed ? (["▲", "critical"] as const) : (signs[outcome] ?? ["–", "quiet"]);
  const stopped = steps.findLast(({ result }) => result !== "passed");
  return (
    <article class={occurrenceLook.rule} aria-label={`Rule ${rule}`}>
      <p>
        <span class={ui.state} data-tone={tone} aria-hidden="true">
          {sign}
        </span>{" "}
        <a href={linkTo(["rules", "rules", rule])}>
          <strong>{rule}</strong>
        </a>
        {made.length === 0 && <> {outcomes[outcome]}</>}
      </p>
      {made.map((delivery) => (
        <DeliveryCard key={delivery.id} delivery={delivery} changed={changed} />
      ))}
      {made.length === 0 && stopped && (
        <>
          {!outcomes[outcome]?.includes(stopped.reason) && <p class={ui.hint}>{stopped.reason}</p>}
          <StepLinks step={stopped} />
        </>
      )}
      <details>
        <summary class={ui.hint}>How it decided</summary>
        <Steps steps={steps} />
      </details>
    </article>
  );
}
