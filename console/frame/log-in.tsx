import { useSignal } from "@preact/signals";
import { logIn, logInFailure } from "../data/session.ts";
import ui from "../ui/ui.module.css";
import frameLook from "./frame.module.css";
import { Brand } from "./icon.tsx";

/** Asks for an API key. It is sent once and kept nowhere: the server answers with a cookie that no script can read. */
export function LogIn() {
  const key = useSignal("");
  const busy = useSignal(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    busy.value = true;
    await logIn({ case: "key", value: key.value.trim() });
    busy.value = false;
  };
  const failure = logInFailure.value;
  return (
    <main class={frameLook.logIn}>
      <form onSubmit={submit} aria-labelledby="log-in-title">
        <p class={frameLook.brand}>
          <Brand />
        </p>
        <h1 id="log-in-title">Log in</h1>
        {failure && (
          <p class={ui.problem} role="alert">
            {failure.message}
          </p>
        )}
        <label for="key">API key</label>
        <input
          id="key"
          type="password"
          autofocus
          autocomplete="off"
          spellcheck={false}
          required
          value={key.value}
          onInput={({ currentTarget }) => {
            key.value = currentTarget.value;
          }}
          placeholder="bf_…"
          aria-describedby="key-hint"
        />
        <p class={ui.hint} id="key-hint">
          The first key is in the file <code>admin.key</code> of the server's data directory. On the server,{" "}
          <code>npm run belfry -- console</code> prints a link that needs no key.
        </p>
        <button type="submit" class={ui.primary} disabled={busy.value}>
          {busy.value ? "Logging in…" : "Log in"}
        </button>
      </form>
    </main>
  );
}
