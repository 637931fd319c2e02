import { computed, signal } from "@preact/signals";
import { preference } from "./preferences.ts";

/** The occurrences that this browser notifies a person of while no tab is in sight. */
export const alerts = preference<"off" | "critical">("alerts", "off");

/** The browser's permission to show notifications; "none": it knows of none, "unable": a page without a service worker can show none. */
export const browserShows = signal<NotificationPermission | "none" | "unable">("none");

export const alertsOn = computed(() => alerts.value === "critical" && browserShows.value === "granted");

/** Finds out whether the browser shows notifications. Called at the start, and once a person was asked. */
export function lookAtBrowser(): void {
  browserShows.value = typeof Notification === "undefined" ? "none" : Notification.permission;
}

/** Chooses, and has the browser ask the person if it has not yet. What was chosen stays where it refuses: it may be allowed later. */
export async function chooseAlerts(chosen: typeof alerts.value): Promise<void> {
  alerts.value = chosen;
  if (chosen === "off" || typeof Notification === "undefined") return;
  await Notification.requestPermission();
  lookAtBrowser();
  // Some browsers allow what they then cannot do.
  if (alertsOn.value)
    notify("Belfry", "Critical occurrences are shown like this while no tab of the console is in sight.");
}

/** Has the browser show a text; a click on it comes back to this tab. */
export function notify(title: string, body: string, clicked?: () => void): void {
  try {
    const shown = new Notification(title, { body });
    shown.onclick = () => {
      window.focus();
      clicked?.();
      shown.close();
    };
  } catch {
    browserShows.value = "unable";
  }
}
