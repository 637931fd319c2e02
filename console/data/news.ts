import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { onNews } from "./live.ts";

/**
 * A number that rises with the watch's news: at once, then at most every `everyMs`, and once after the last, since what follows from a
 * change, such as an answer of a receiver, is no news itself.
 * @param ofEvent the event whose news count; absent: all
 */
export function useNews(everyMs: number, ofEvent?: string): ReadonlySignal<number> {
  const round = useSignal(0);
  useEffect(() => {
    let heard = false;
    let waiting: ReturnType<typeof setTimeout> | undefined;
    const rise = () => {
      round.value += 1;
      waiting = setTimeout(() => {
        waiting = undefined;
        if (!heard) return;
        heard = false;
        rise();
      }, everyMs);
    };
    const endNews = onNews((news) => {
      if (ofEvent !== undefined && "eventIds" in news && !news.eventIds.includes(ofEvent)) return;
      heard = true;
      if (waiting === undefined) rise();
    });
    return () => {
      endNews();
      clearTimeout(waiting);
    };
  }, [ofEvent]);
  return round;
}
