import ui from "./ui.module.css";

/** Shapes of twelve units that differ without their colours. */
const shapes: Readonly<Record<string, string>> = {
  critical: "M6 0 12 6 6 12 0 6Z",
  error: "M6 .5 12 11.5H0Z",
  warning: "M1 1H11V11H1Z",
  info: "M6 .5A5.5 5.5 0 1 1 6 11.5 5.5 5.5 0 1 1 6 .5Z",
  debug: "M6 .5A5.5 5.5 0 1 1 6 11.5 5.5 5.5 0 1 1 6 .5ZM6 2.5A3.5 3.5 0 1 0 6 9.5 3.5 3.5 0 1 0 6 2.5Z",
};

/** The sign of a severity; its word stands beside it, or is read out. */
export function Sign({ tone }: { tone: string }) {
  return (
    <svg class={ui.sign} data-tone={tone} viewBox="0 0 12 12" aria-hidden="true">
      <path d={shapes[tone] ?? shapes.debug} />
    </svg>
  );
}
