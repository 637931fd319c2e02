import { useEffect, useRef } from "preact/hooks";

/**
 * Has the focus go on to what `successor` returns when the element that has it is removed from `area`, as the button is of an action
 * that is done.
 */
export function useFocusKept(
  area: { readonly current: HTMLElement | null },
  successor: () => HTMLElement | null,
): void {
  const latest = useRef(successor);
  latest.current = successor;
  useEffect(() => {
    const element = area.current;
    if (element === null) return;
    let last: Node | undefined;
    const note = ({ target }: FocusEvent) => {
      last = target as Node;
    };
    const removed = new MutationObserver(() => {
      if (last === undefined || last.isConnected) return;
      last = undefined;
      const focused = document.activeElement;
      if (focused === null || focused === document.body) latest.current()?.focus({ preventScroll: true });
    });
    element.addEventListener("focusin", note);
    removed.observe(element, { childList: true, subtree: true });
    return () => {
      element.removeEventListener("focusin", note);
      removed.disconnect();
    };
  }, []);
}
