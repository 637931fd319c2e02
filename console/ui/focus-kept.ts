import { useEffect, useRef } from "preact/hooks";

/** Moves the focus to `successor()` when the focused element is removed from `area`, such as the button of a finished action. */
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
    const press = ({ target }: PointerEvent) => {
      if (last !== undefined && !last.contains(target as Node)) last = undefined;
    };
    const removed = new MutationObserver(() => {
      if (last === undefined || last.isConnected) return;
      last = undefined;
      const focused = document.activeElement;
      if (focused === null || focused === document.body) latest.current()?.focus({ preventScroll: true });
    });
    element.addEventListener("focusin", note);
    document.addEventListener("pointerdown", press);
    removed.observe(element, { childList: true, subtree: true });
    return () => {
      element.removeEventListener("focusin", note);
      document.removeEventListener("pointerdown", press);
      removed.disconnect();
    };
  }, []);
}
