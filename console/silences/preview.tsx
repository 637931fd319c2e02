import type { ReadonlySignal } from "@preact/signals";
import { type PreviewSilenceResponse, SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { type Answer, useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { useSettled } from "../data/settled.ts";
import { matchersIn } from "../form/matchers-field.tsx";
import { Problem } from "../ui/problem.tsx";

const silences = clientOf(SilenceService);

/** What the matchers that are typed would match, once they are not typed on. */
export function usePreview(
  matchers: ReadonlySignal<string>,
): ReadonlySignal<Answer<PreviewSilenceResponse | undefined>> {
  const settled = useSettled(matchers.value);
  return useAnswer(async (signal) => {
    const texts = matchersIn(settled);
    if (texts.length === 0) return undefined;
    return await silences.previewSilence({ silence: { matchers: texts } }, { signal });
  }, settled);
}

const shownMax = 10;

/** The open occurrences that a silence would match. */
export function SilencePreview({ answer }: { answer: Answer<PreviewSilenceResponse | undefined> }) {
  const { value, failure } = answer;
  if (failure !== undefined) return <Problem failure={failure} />;
  if (value === undefined) return null;
  const count = Number(value.count);
  return (
    <section aria-label="Preview" aria-live="polite">
      <p>
        It matches {count.toLocaleString("en")} open {count === 1 ? "occurrence" : "occurrences"}
        {value.ruleNames.length > 0 && `, of which these rules notify: ${value.ruleNames.join(", ")}`}.
      </p>
      <ul>
        {value.occurrences.slice(0, shownMax).map(({ occurrenceId, name, summary }) => (
          <li key={occurrenceId}>
            <a href={linkTo(["occurrences", occurrenceId])}>{name}</a> {summary}
          </li>
        ))}
        {count > shownMax && <li>and {(count - shownMax).toLocaleString("en")} more</li>}
      </ul>
    </section>
  );
}
