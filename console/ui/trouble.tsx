import ui from "./ui.module.css";
/** Shows the reason for which something that is shown by itself has no effect. */
export function Trouble({ text }: { text: string }) {
  if (text === "") return null;
  return (
    <div class={ui.problem} role="alert">
      <p>{text}</p>
    </div>
  );
}

/** The same in a row of a list. */
export function TroubleMark({ text }: { text: string }) {
  return (
    <span class={ui.state} data-tone="critical">
      <span aria-hidden="true">▲</span> {text}
    </span>
  );
}
