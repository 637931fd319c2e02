import type { Sql } from "../../db/connect.ts";
import type { NotifyListener } from "../../db/listen.ts";
import type { WatchHub } from "./watch-hub.ts";

const channel = "belfry_feed";
const gatherMs = 20;
/** A notification holds less than 8,000 bytes; with more tenants it names none, and means all. */
const namedMax = 200;

/** Notifies the other servers of tenants whose feeds have grown, gathered over some milliseconds, and listens to them. */
export function feedNotifications(sql: Sql, replicas: Pick<NotifyListener, "listen">, watches: WatchHub) {
  const grown = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  function send() {
    timer = undefined;
    const payload = grown.size > namedMax ? "" : [...grown].join(",");
    grown.clear();
    // A hint only: other servers also poll each second.
    sql`select pg_notify(${channel}, ${payload})`.catch(() => undefined);
  }

  replicas.listen(channel, (payload) => watches.wake(payload === "" ? undefined : payload.split(",")));
  return {
    grew(tenantId: string): void {
      grown.add(tenantId);
      timer ??= setTimeout(send, gatherMs).unref();
    },
    stop: () => clearTimeout(timer),
  };
}
