import { useSignal } from "@preact/signals";
import { address, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { Lines } from "../../ui/lines.tsx";
import { Problem } from "../../ui/problem.tsx";
import { ScreenHead } from "../../ui/screen-head.tsx";
import ui from "../../ui/ui.module.css";
import { Arrivals } from "./arrivals.tsx";
import { IngestKey } from "./ingest-key.tsx";
import { authorityLine, keyFile, keyLine, placeOf, programs } from "./lines.ts";

/** SHA-256 of the authority's certificate as this server offers it; undefined where it has none of its own. */
async function authorityDigest(signal: AbortSignal): Promise<string | undefined> {
  const answer = await fetch("/ca.crt", { signal });
  if (!answer.ok) return undefined;
  const digest = await crypto.subtle.digest("SHA-256", await answer.arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The way of the first data: an address, a key, lines to paste, and what arrives by them. */
export function SendData() {
  const secret = useSignal("");
  const authority = useAnswer(authorityDigest);
  const { value: digest, loading, failure, again } = authority.value;
  const place = placeOf(location, digest !== undefined);
  const name = address.value.parameters.get("with") ?? "curl";
  const program = programs[name] ?? programs.curl;
  return (
    <>
      <ScreenHead title="Send data" count={`to ${location.host}`} />
      <div class={ui.scroll}>
        <section class={ui.card} aria-labelledby="the-key">
          <h2 id="the-key">1. The address and a key</h2>
          <p>
            This server is <code>{place.origin}</code> <CopyButton text={place.origin} what="the address" />
          </p>
          <IngestKey
            secret={secret.value}
            made={(now) => {
              secret.value = now;
            }}
          />
        </section>
        <section class={ui.card} aria-labelledby="the-files">
          <h2 id="the-files">2. {place.ownAuthority ? "Two files" : "A file"} that the lines below read</h2>
          <Problem failure={failure} again={again} />
          <Lines
            title="The key"
            where="in a shell, in the folder of your program"
            text={keyLine(secret.value || "bf_…")}
          />
          <p class={ui.hint}>
            The line holds the key, and a shell keeps what is typed in its history. Where that must not be, run{" "}
            <code>read -rs KEY; (umask 077; printf '%s' "$KEY" &gt; {keyFile})</code> and paste the key alone.
          </p>
          {digest !== undefined && place.ownAuthority && (
            <>
              <Lines title="The certificate" where="likewise" text={authorityLine(place, digest)} />
              <p class={ui.hint}>
                The server's certificate is signed by an authority of its own, which no other machine knows. The line
                keeps the authority's certificate when it is the one that this page has; on a Mac write{" "}
                <code>shasum -a 256 -c</code>. <a href="/certificate">The server's certificate</a> says more. Where
                something in front of the server has a certificate of a public authority, leave out what names the file.
              </p>
            </>
          )}
        </section>
        <section class={ui.card} aria-labelledby="the-lines">
          <h2 id="the-lines">3. Lines to paste</h2>
          <nav class={ui.sections} aria-label="Programs">
            {Object.entries(programs).map(([each, { label }]) => (
              <a
                key={each}
                href={linkTo(["settings", "send"], { with: each })}
                aria-current={programs[each] === program ? "true" : undefined}
              >
                {label}
              </a>
            ))}
          </nav>
          <p>{program?.note}</p>
          {!loading && program?.pastes(place).map((paste) => <Lines key={paste.title} {...paste} />)}
        </section>
        <Arrivals />
      </div>
    </>
  );
}
