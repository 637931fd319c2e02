import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { say } from "./notice.ts";

/** Loads code when it is first wanted; undefined until then. Where it cannot be had that is said, and `failed` is called. */
export function useLoaded<T>(load: () => Promise<T>, wanted: boolean, failed?: () => void): T | undefined {
  const loaded = useSignal<{ readonly code: T } | undefined>(undefined);
  useEffect(() => {
    if (!wanted || loaded.peek() !== undefined) return;
    load().then(
      (code) => {
        loaded.value = { code };
      },
      () => {
        failed?.();
        say("This part of the console could not be loaded. Load the page again once the server answers.");
      },
    );
  }, [wanted]);
  return loaded.value?.code;
}
