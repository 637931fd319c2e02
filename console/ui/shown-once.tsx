import { useId } from "preact/hooks";
import { CopyButton } from "./copy.tsx";
import ui from "./ui.module.css";

/** A secret that the server has just made: it stands here once, can be copied, and is kept nowhere. */
export function ShownOnce({ label, secret, done }: { label: string; secret: string; done(): void }) {
  const id = useId();
  return (
    <section class={ui.shownOnce} aria-label={label}>
      <label for={id}>{label}</label>
      <input id={id} readOnly value={secret} onFocus={({ currentTarget }) => currentTarget.select()} />
      <p>It is shown this once. Keep it where your secrets are.</p>
      <div class={ui.buttons}>
        <CopyButton text={secret} />
        <button type="button" onClick={done}>
          Done
        </button>
      </div>
    </section>
  );
}
