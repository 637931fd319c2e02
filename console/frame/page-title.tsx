import { useLayoutEffect } from "preact/hooks";
import { subject } from "../data/subject.ts";
import { marked } from "./marked-texts.ts";

/** The title of the page: what the screen shows, and which screen it is. */
export function PageTitle({ screen = "" }: { screen?: string | undefined }) {
  const shown = subject.value === screen ? "" : marked(subject.value);
  const title = [shown, screen, "Belfry"].filter((text) => text !== "").join(" · ");
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
