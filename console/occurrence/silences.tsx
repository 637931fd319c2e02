import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { may } from "../data/session.ts";
import { Problem } from "../ui/problem.tsx";
import { Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";

const silences = clientOf(SilenceService);

/** What silences an occurrence now, and until when; the way to a silence of its labels. */
export function OccurrenceSilences({ occurrenceId }: { occurrenceId: string }) {
  const answer = useAnswer((signal) => silences.listSilences({ occurrenceId }, { signal }), occurrenceId, "silences");
  const { value, failure, again } = answer.value;
  const found = value?.silences ?? [];
  return (
    <section class={ui.card} aria-labelledby="silences">
      <h2 id="silences">Silences</h2>
      <Problem failure={failure} again={again} />
      {value && found.length === 0 && <p>Nothing silences it.</p>}
      <ul class={ui.plain}>
        {found.map(({ id, comment, createdBy, author, endsAt }) => (
          <li key={id}>
            <a href={linkTo(["silences"], { id })}>{comment}</a> by {createdBy || author?.clientName}, until{" "}
            {endsAt === undefined ? "what it matched has ended" : <Time at={endsAt} />}
          </li>
        ))}
      </ul>
      {may(SilenceService.method.createSilence) && (
        <p>
          <a class={ui.button} href={linkTo(["silences", "new"], { occurrence: occurrenceId })}>
            Silence…
          </a>
        </p>
      )}
    </section>
  );
}
