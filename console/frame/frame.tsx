import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren, ComponentType } from "preact";
import { linkTo, screenName } from "../data/address.ts";
import { answeredAtMs, callsUnderWay, serverAway } from "../data/calls.ts";
import { destinationsDown } from "../data/health.ts";
import { liveState } from "../data/live.ts";
import { theme, zone } from "../data/preferences.ts";
import { runningWindows } from "../data/running-windows.ts";
import { logOut, session } from "../data/session.ts";
import { timeText, zoneName } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { Alerts, AlertsChoice } from "./alerts.tsx";
import frameLook from "./frame.module.css";
import { Brand, ScreenIcon } from "./icon.tsx";
import { type FinderOf, Keys, openFinder, openKeys } from "./keys.tsx";
import { LogIn } from "./log-in.tsx";
import { NoticePlace } from "./notice.tsx";
import { PageTitle } from "./page-title.tsx";
import { ReplaceSession } from "./replace-session.tsx";
import type { Screen } from "./screen.ts";
import { criticalCount } from "./unacknowledged.ts";

interface FrameProps {
  readonly screens: readonly Screen[];
  loadFinder(): Promise<FinderOf>;
}

export function Frame({ screens, loadFinder }: FrameProps) {
  if (session.value === undefined) return <Starting />;
  if (session.value === null) return <LogIn />;
  const screen = screens.find(({ name }) => name === screenName.value);
  const label = screens.find(({ name }) => name === (screen?.below ?? screen?.name))?.label;
  return (
    <div class={frameLook.frame}>
      <button type="button" class={frameLook.skip} onClick={toMain}>
        Skip to content
      </button>
      <PageTitle screen={label} />
      <Alerts />
      <Navigation screens={screens} open={screen?.below ?? screen?.name} />
      <Main>{screen ? <Opened key={screen.name} screen={screen} /> : <NoScreen />}</Main>
      <NoticePlace />
      <ReplaceSession />
      <Keys screens={screens} loadFinder={loadFinder} />
    </div>
  );
}

function Main({ children }: { children: ComponentChildren }) {
  return (
    <main id="main" tabIndex={-1} aria-busy={callsUnderWay.value > 0}>
      <Offline />
      {children}
    </main>
  );
}

/** To the list where the screen has one: before it stand search, filters and charts, dozens of presses of Tab. */
function toMain() {
  const list = document.querySelector<HTMLElement>("main [role=grid], main [data-toggle]");
  (list ?? document.getElementById("main"))?.focus();
}

function Starting() {
  return (
    <main class={frameLook.logIn} aria-busy="true">
      <h1 class={ui.quiet}>{serverAway.value ? "The server does not answer; waiting for it…" : "Belfry"}</h1>
    </main>
  );
}

function NoScreen() {
  return (
    <div class={ui.empty}>
      <h1>There is no such screen</h1>
      <a href={linkTo(["events"])}>To the events</a>
    </div>
  );
}

/** A page that is younger is not loaded again by itself, so that it never is all the time. */
const reloadAfterMs = 5000;
const askAgainMs = 2000;

/** Loads the screen's code and shows it. */
function Opened({ screen }: { screen: Screen }) {
  const loaded = useSignal<ComponentType | undefined>(undefined);
  // Whether the server was there after the code could not be loaded. Undefined: nothing failed.
  const there = useSignal<boolean | undefined>(undefined);
  const look = async () => {
    there.value = await fetch("./").then(
      ({ ok }) => ok,
      () => false,
    );
    return there.value;
  };
  /** Never without a server: from a browser's error page nothing comes back. */
  const reload = async () => {
    if (await look()) location.reload();
  };
  useSignalEffect(() => {
    let waiting: ReturnType<typeof setTimeout> | undefined;
    let ended = false;
    // Browsers remember that a script could not be had, and another version has other scripts: only a new page helps.
    const again = async () => {
      const found = await look();
      if (ended) return;
      if (found && performance.now() > reloadAfterMs) location.reload();
      waiting = setTimeout(again, askAgainMs);
    };
    screen.load().then(
      (component) => {
        loaded.value = component;
      },
      () => {
        there.value = false;
        if (!ended) void again();
      },
    );
    return () => {
      ended = true;
      clearTimeout(waiting);
    };
  });
  if (there.value === false) {
    return (
      <div class={ui.empty}>
        <h1>This screen is not loaded yet</h1>
        <p role="status">The server does not answer. The screen opens as soon as it does.</p>
      </div>
    );
  }
  if (there.value) {
    return (
      <div class={ui.problem} role="alert">
        <p>This part of the console could not be loaded: the server was away, or was replaced by another version.</p>
        <button type="button" onClick={() => void reload()}>
          Load the page again
        </button>
      </div>
    );
  }
  const Component = loaded.value;
  return Component === undefined ? <h1 class={`${ui.quiet} ${ui.pad}`}>Loading…</h1> : <Component />;
}

function Offline() {
  if (!serverAway.value) return null;
  return (
    <p class={frameLook.banner} role="status">
      The server does not answer. What is shown is from {timeText(answeredAtMs.value)} or before; the page comes back by
      itself.
    </p>
  );
}

function Navigation({ screens, open }: { screens: readonly Screen[]; open: string | undefined }) {
  const unfolded = useSignal(false);
  return (
    <header class={unfolded.value ? `${frameLook.side} ${frameLook.open}` : frameLook.side}>
      <a class={frameLook.brand} href={linkTo(["events"])}>
        <Brand />
      </a>
      <button
        type="button"
        class={frameLook.menu}
        aria-expanded={unfolded.value}
        aria-controls="menu"
        onClick={() => {
          unfolded.value = !unfolded.value;
        }}
      >
        Menu
      </button>
      <div id="menu" class={frameLook.menuBody}>
        <div>
          <button type="button" class={frameLook.find} aria-keyshortcuts="Control+K Meta+K" onClick={openFinder}>
            Find anything <span class={frameLook.key}>Ctrl K</span>
          </button>
          <nav aria-label="Screens">
            {screens
              .filter(({ label }) => label !== undefined)
              .map(({ name, label }) => (
                <a
                  key={name}
                  href={linkTo([name])}
                  aria-current={open === name ? "page" : undefined}
                  onClick={() => {
                    unfolded.value = false;
                  }}
                >
                  <ScreenIcon name={name} />
                  {label}
                  <Badge screen={name} />
                </a>
              ))}
          </nav>
        </div>
        <Preferences />
      </div>
    </header>
  );
}

/** Names the count beside the link to a screen, for one and for many. */
const badges: Readonly<
  Record<string, readonly [count: () => bigint | undefined, tone: string, one: string, many: string]>
> = {
  events: [
    () => criticalCount.value,
    "critical",
    "unacknowledged critical occurrence",
    "unacknowledged critical occurrences",
  ],
  deliveries: [
    () => destinationsDown.value,
    "critical",
    "destination takes no notifications",
    "destinations take no notifications",
  ],
  windows: [() => runningWindows.value, "info", "maintenance window runs", "maintenance windows run"],
};

/** Shows what there is to know of a screen before it is opened. */
function Badge({ screen }: { screen: string }) {
  const [counted, tone, one, many] = badges[screen] ?? [];
  const count = counted?.() ?? 0n;
  if (count === 0n) return null;
  return (
    <span class={frameLook.badge} data-tone={tone}>
      {count.toLocaleString("en")}
      <span class={ui.unseen}> {count === 1n ? one : many}</span>
    </span>
  );
}

const liveTexts = {
  live: "Live",
  connecting: "Connecting…",
  away: "Not live: waiting for the server",
  hidden: "Paused",
} as const;

function Preferences() {
  const current = session.value;
  return (
    <div class={frameLook.sideFoot}>
      <p class={`${frameLook.live} ${frameLook[liveState.value]}`} role="status">
        {liveTexts[liveState.value]}
      </p>
      <details class={frameLook.account}>
        <summary>
          <span>
            <span class={ui.unseen}>Account: </span>
            {current?.client} <span class={ui.quiet}>{current?.tenant}</span>
          </span>
        </summary>
        <div class={frameLook.accountBody}>
          <label>
            Times
            <select
              value={zone.value}
              onChange={({ currentTarget }) => {
                zone.value = currentTarget.value as typeof zone.value;
              }}
            >
              <option value="local">{zone.value === "local" ? zoneName.value : "Your zone"}</option>
              <option value="UTC">UTC</option>
            </select>
          </label>
          <label>
            Colours
            <select
              value={theme.value}
              onChange={({ currentTarget }) => {
                theme.value = currentTarget.value as typeof theme.value;
              }}
            >
              <option value="system">As the system</option>
              <option value="light">Light</option>
              <option value="dark">Dark</option>
            </select>
          </label>
          <AlertsChoice />
          <p class={ui.hint}>
            Key <code>{current?.keyPrefix}</code>
          </p>
          <button type="button" onClick={openKeys}>
            Keyboard
          </button>
          <button type="button" onClick={() => void logOut()}>
            Log out
          </button>
        </div>
      </details>
    </div>
  );
}
