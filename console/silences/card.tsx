import { type Silence, Silence_State as State } from "#gen/belfry/notifications/v1/silence_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { say } from "../data/notice.ts";
import { may } from "../data/session.ts";
import { AskFirst } from "../ui/ask-first.tsx";
import { Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { authorText } from "./author.ts";
import { endSilence } from "./changes.ts";
import silencesLook from "./silences.module.css";

const words: Readonly<Record<number, readonly [sign: string, word: string, tone: string]>> = {
  [State.PENDING]: ["○", "Scheduled", "info"],
  [State.ACTIVE]: ["●", "Active", "good"],
  [State.EXPIRED]: ["✓", "Over", "quiet"],
};

/** One silence: what it holds, until when, who made it and why; a button that ends it. */
export function SilenceCard({ silence, changed }: { silence: Silence; changed(): void }) {
  const { id, matchers, ruleNames, destinationNames, comment, createdBy, author, state } = silence;
  const [sign, word, tone] = words[state] ?? ["", "", ""];
  const end = async () => {
    await endSilence(id);
    changed();
    say("The silence has ended; what it held and still matches is sent.");
  };
  return (
    <article class={ui.card} aria-label={comment}>
      <div class={silencesLook.head}>
        <h2>
          <span class={ui.state} data-tone={tone}>
            <span aria-hidden="true">{sign}</span> {word}
          </span>{" "}
          {comment}
        </h2>
        {state !== State.EXPIRED && may(SilenceService.method.expireSilence) && (
          <AskFirst action="End now" question="End this silence now?" act={end}>
            <p>What it holds and still matches is sent at once.</p>
          </AskFirst>
        )}
      </div>
      <div class={silencesLook.body}>
        <ul class={ui.plain}>
          {matchers.map((matcher) => (
            <li key={matcher}>
              <code>{matcher}</code>
            </li>
          ))}
        </ul>
        <dl class={ui.facts}>
          <dt>Start</dt>
          <dd>
            <Time at={silence.startsAt} />
          </dd>
          <dt>End</dt>
          <dd>{silence.endsAt === undefined ? "When what it matched has ended" : <Time at={silence.endsAt} />}</dd>
          <dt>Author</dt>
          <dd>{authorText(author?.clientName ?? "", createdBy)}</dd>
          {ruleNames.length > 0 && (
            <>
              <dt>Rules</dt>
              <dd>{ruleNames.join(", ")}</dd>
            </>
          )}
          {destinationNames.length > 0 && (
            <>
              <dt>Destinations</dt>
              <dd>{destinationNames.join(", ")}</dd>
            </>
          )}
        </dl>
      </div>
    </article>
  );
}
