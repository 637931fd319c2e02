import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** A value that a person types, once it has been the same for a moment: what is asked of the server is asked of this one. */
export function useSettled<T extends string | number | undefined>(value: T, waitMs = 300): T {
  const settled = useSignal(value);
  useEffect(() => {
    const waiting = setTimeout(() => {
      settled.value = value;
    }, waitMs);
    return () => clearTimeout(waiting);
  }, [value]);
  return settled.value;
}
