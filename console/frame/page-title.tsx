import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { inSight } from "../data/in-sight.ts";
import { useNews } from "../data/news.ts";
import { may, session } from "../data/session.ts";
import { subject } from "../data/subject.ts";
import { marked } from "./marked-texts.ts";
import { criticalCount, unacknowledged } from "./unacknowledged.ts";

const events = clientOf(EventQueryService);
/** The shortest time between two counts while events change. */
const askAgainMs = 5000;
/** A page out of sight may hear no news: it counts from time to time. */
const unseenMs = 60_000;

/** Counts open occurrences that nobody has acknowledged; 0 until the first answer. */
function useUnacknowledged(): number {
  const news = useNews(askAgainMs);
  const unseen = useSignal(0);
  useEffect(() => {
    const looking = setInterval(() => {
      if (!inSight.peek()) unseen.value += 1;
    }, unseenMs);
    return () => clearInterval(looking);
  }, []);
  const answer = useAnswer(async (signal) => {
    news.value;
    unseen.value;
    if (session.value == null || !may(EventQueryService.method.countEvents)) {
      criticalCount.value = 0n;
      return 0;
    }
    const { results } = await events.countEvents(
      { query: unacknowledged, fields: [{ field: "severity" }] },
      { signal },
    );
    const bySeverity = results.severity?.values ?? [];
    if (!signal.aborted)
      criticalCount.value = bySeverity.find(({ value }) => value?.kind.value === Severity.CRITICAL)?.count ?? 0n;
    return bySeverity.reduce((sum, { count }) => sum + Number(count), 0);
  });
  return answer.value.value ?? 0;
}

/** The title of the page: how much nobody has taken on, what the screen shows, and which screen it is. */
export function PageTitle({ screen = "" }: { screen?: string | undefined }) {
  const count = useUnacknowledged();
  const shown = subject.value === screen ? "" : marked(subject.value);
  const words = [shown, screen, "Belfry"].filter((text) => text !== "").join(" · ");
  const title = count === 0 ? words : `(${count.toLocaleString("en")}) ${words}`;
  useLayoutEffect(() => {
    document.title = title;
  }, [title]);
  useLayoutEffect(
    () => () => {
      document.title = "Belfry";
    },
    [],
  );
  return null;
}
