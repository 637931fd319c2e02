import type { Event } from "#gen/belfry/events/v1/event_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { useNews } from "../data/news.ts";
import { may } from "../data/session.ts";
import { authorText } from "../silences/author.ts";
import { silenceChanges } from "../silences/changes.ts";
import { Problem } from "../ui/problem.tsx";
import { nowMs, Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";

const silences = clientOf(SilenceService);

/** The shortest time between two questions while the occurrence changes. */
const askAgainMs = 1000;

/** Lists what silences an occurrence now, and until when; links to a window that holds its entity. */
export function OccurrenceSilences({ occurrenceId, event }: { occurrenceId: string; event: Event }) {
  const news = useNews(askAgainMs, event.id);
  const answer = useAnswer(
    (signal) => {
      news.value;
      silenceChanges.value;
      // Silences end by themselves, and others make and end them.
      nowMs.value;
      return silences.listSilences({ occurrenceId }, { signal });
    },
    occurrenceId,
    "silences",
  );
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
            <a href={linkTo(["silences"], { id })}>{comment}</a> by {authorText(author?.clientName ?? "", createdBy)},
            until {endsAt === undefined ? "what it matched has ended" : <Time at={endsAt} />}
          </li>
        ))}
      </ul>
      {event.entity && may(MaintenanceWindowService.method.createMaintenanceWindow) && (
        <p>
          <a class={ui.button} href={linkTo(["windows", "new"], { entity: event.entity })}>
            Put entity into maintenance…
          </a>
        </p>
      )}
    </section>
  );
}
