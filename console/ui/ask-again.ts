import { useEffect, useRef } from "preact/hooks";
import { nowMs } from "./time.tsx";

/** Asks again whenever the present moves, for answers that change without news of the watch. @param on false: it does not */
export function useAskAgain(again: () => void, on: boolean): void {
  const now = nowMs.value;
  const seen = useRef(now);
  useEffect(() => {
    if (seen.current === now) return;
    seen.current = now;
    if (on) again();
  }, [now]);
}
