import { useLayoutEffect, useRef } from "preact/hooks";

type Acts = Readonly<Record<string, () => void>>;

/** What single letters do on the screen that is open; of two that take a letter, the one that came later has it. */
const shown: { current: Acts }[] = [];

/** Has these letters do something as long as the component is shown. */
export function useShortcuts(acts: Acts): void {
  const latest = useRef(acts);
  latest.current = acts;
  // With the drawing: a letter that is pressed at once is not lost.
  useLayoutEffect(() => {
    shown.push(latest);
    return () => void shown.splice(shown.indexOf(latest), 1);
  }, []);
}

/** Does what a letter does here. Returns whether it does anything. */
export function pressShortcut(letter: string): boolean {
  const act = shown.findLast(({ current }) => Object.hasOwn(current, letter))?.current[letter];
  act?.();
  return act !== undefined;
}
