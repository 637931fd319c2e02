import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import type { Config } from "../config/settings.ts";
import type { HostsInUse } from "../credentials/bound-hosts.ts";
import type { Keyring } from "../credentials/keyring.ts";
import type { Pool } from "../db/connect.ts";
import type { Formats } from "../db/formats.ts";
import type { NotifyListener } from "../db/listen.ts";
import type { EntityCache } from "../entities/entity-cache.ts";
import type { StoreChanges } from "../events/changes.ts";
import { dataBounds, ingestEvents } from "../events/ingest.ts";
import type { Log } from "../log.ts";
import type { OpenWindows } from "./api/explain.ts";
import { notificationServices } from "./api/service.ts";
import { type AlertStates, alertStates } from "./api/silences/alert-states.ts";
import { type SilenceDoor, silenceDoor } from "./api/silences/door.ts";
import { BeyondChain, countMadeEvent } from "./deciding/chain-counts.ts";
import type { RuleEngine } from "./deciding/engine.ts";
import { beyondChain, openSendEnvironment } from "./kinds/send-environment.ts";
import { hostsInUse } from "./sending/bound-credentials.ts";
import type { Dispatcher } from "./sending/dispatcher.ts";
import { startSending } from "./sending/start.ts";
import { silenceWriter } from "./silences/write.ts";

interface Options {
  keyring: Keyring;
  formats: Pick<Formats, "begun" | "begin">;
  nowMs(): number;
  /** What stores the events that destinations of the kind `event` make. */
  store: StoreChanges;
  /** What this process knows of entities. */
  known: EntityCache;
  /** Reports that there are jobs. */
  wakeJobs(): void;
  /** Decides again on deliveries right before they are tried. */
  rules: Pick<RuleEngine, "recheck" | "held" | "inForce">;
  /** The maintenance windows that an entity is in. */
  openWindows: OpenWindows;
  log: Log;
}

/** Notifications of this process: what sends them, and the services that show and change what is sent. */
export interface Notifications extends Pick<Dispatcher, "wake" | "stats" | "stop"> {
  /** Returns where the secrets of a credential are sent. */
  readonly hostsInUse: HostsInUse;
  /** Silences, for the door of other tools, and what it shows of open occurrences. */
  readonly silences: SilenceDoor;
  standing(tenantId: string): Promise<{ states: AlertStates; receivers: readonly string[] }>;
  readonly services: readonly [DescService, Partial<ServiceImpl<DescService>>][];
}

/** Starts what goes out. */
export async function startNotifications(
  pool: Pool,
  replicas: Pick<NotifyListener, "listen">,
  config: Config,
  { keyring, formats, nowMs, store, known, rules, openWindows, wakeJobs, log }: Options,
): Promise<Notifications> {
  const world = openSendEnvironment(config, {
    ownUrl: `${config.plaintext ? "http" : "https"}://${config.host}:${config.port}`,
    nowMs,
    async createEvent(tenantId, item, chain, root) {
      /** What is there already, and what ends, does not count. */
      const counting: StoreChanges = async (tx, locked, changes, atMs) => {
        if (changes.length > 0 && item.status !== Status.CLOSED) await countMadeEvent(tx, tenantId, root);
        await store(tx, locked, changes, atMs);
      };
      const storing = { nowMs: nowMs(), store: counting, known, bounds: dataBounds(config) };
      try {
        return (await ingestEvents(pool.ingest, tenantId, [{ ...item, chain, root }], storing)).get(0);
      } catch (error) {
        if (error instanceof BeyondChain) return beyondChain;
        throw error;
      }
    },
  });
  const waitMsMax = config.deliveryWaitSecMax * 1000;
  const sending = await startSending(pool, replicas, config, {
    keyring,
    begun: formats.begun,
    world,
    nowMs,
    log,
    recheck: rules.recheck,
    heldRules: rules.held,
    waitMsMax,
  });
  const writing = { bounds: config, nowMs, wake: sending.wake, wakeJobs };
  return {
    services: notificationServices(pool.sql, {
      ...writing,
      keyring,
      formats,
      world,
      openWindows,
      inForce: rules.inForce,
    }),
    silences: silenceDoor(pool.sql, silenceWriter(pool.sql, writing)),
    async standing(tenantId) {
      const inForce = await rules.inForce(tenantId);
      const receivers = new Set([...inForce.byId.values()].flatMap(({ destinationNames }) => destinationNames));
      return { states: alertStates(pool.sql, tenantId, inForce), receivers: [...receivers].sort() };
    },
    hostsInUse: hostsInUse(world),
    wake: sending.wake,
    stats: sending.stats,
    async stop() {
      await sending.stop();
      await world.outbound.close();
    },
  };
}
