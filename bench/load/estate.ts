// A believable estate: 2,000 entities in 40 racks, 60 names of events, and what they report over time. The same for the
// same seed. Benches of events and notifications share it.
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { type MadeEntity, madeEntities, rackSize, seeded } from "../support/entities.ts";

/** One report of an event, as an agent would send it. */
export interface Report {
  /** After the beginning, ms. */
  atMs: number;
  /** Place in `entities` of the estate. */
  entity: number;
  /** The event's name. */
  name: string;
  type: string;
  severity: Severity;
  status: Status;
  summary: string;
  metadata: Record<string, string | number>;
}

export interface Estate {
  entities: MadeEntity[];
  /** The 60 names of events. */
  names: string[];
  /**
   * What the estate reports, in the order of time, without an end: `perSec` reports a second on average; other than eight
   * let its time pass faster or slower. Most reports repeat an occurrence each minute until it closes; some events flap; in
   * a storm a rack, or four, report at once. An occurrence has ten reports on average; a few entities have most trouble.
   */
  reports(perSec: number): Generator<Report>;
}

interface EventName {
  name: string;
  severity: Severity;
  type: string;
}

/** By the type of entity; a digit is the severity that an event of the name has at first. */
const namesOf = {
  Host:
    "cpu high 3, memory low 3, disk almost full 3, disk full 4, swap in use 2, load high 3, clock drift 2, reboot 2, " +
    "process missing 4, too many open files 4, zombie processes 2, temperature high 5",
  Network:
    "link down 5, link errors 3, packet loss 4, latency high 3, bgp session down 5, ospf neighbour lost 4, " +
    "duplex mismatch 2, route missing 4, bandwidth high 3, fan failed 4, power supply failed 5, configuration changed 2",
  Storage:
    "volume almost full 3, volume offline 5, raid degraded 4, disk failed 4, snapshot failed 3, replication late 3, " +
    "slow volume 3, controller failed 5, cache battery low 3, pool rebuilds 2, quota exceeded 3, scrub errors 4",
  Container:
    "crash loop 4, image pull failed 4, killed for memory 4, pod pending 3, probe failed 3, pod restarted 2, " +
    "cpu throttled 2, node not ready 5, job failed 4, scaling limit reached 3, volume not mounted 4, secret missing 4",
  any:
    "unreachable 4, agent silent 4, certificate expires soon 3, http errors high 4, slow responses 3, queue grows 3, " +
    "login failures 3, backup failed 4, patch missing 2, licence expires soon 2, connections high 3, service stopped 5",
};

const eventNames = new Map(
  Object.entries(namesOf).map(([type, text]): [string, EventName[]] => [
    type,
    text.split(", ").map((each) => ({
      name: each.slice(0, -2),
      severity: Number(each.at(-1)) as Severity,
      type: type.toLowerCase(),
    })),
  ]),
);
const anywhere = eventNames.get("any") ?? [];
const unreachable = anywhere[0] as EventName;

/** One event in trouble: what it still has to report. */
interface Trouble {
  key: string;
  entity: number;
  event: EventName;
  atMs: number;
  everyMs: number;
  severity: Severity;
  /** Reports left of this occurrence. */
  left: number;
  /** Whether the last of them closes it. */
  closes: boolean;
  /** Occurrences that follow it: more than none where an event flaps. */
  flaps: number;
  value: number;
}

const secondMs = 1000;
/** How often something begins, with which the estate reports eight times a second in its own time. */
const beginsASecond = 0.34;
const reportsASecond = 8;
const flapShare = 0.03;
const stormShare = 0.002;

/** The estate of a seed. */
export function estate(seed = 1, count = 2000): Estate {
  const entities = [...madeEntities(count, seed)];
  const names = [...eventNames.values()].flat().map(({ name }) => name);
  return { entities, names, reports: (perSec) => paced(reports(entities, seed), perSec / reportsASecond) };
}

function* paced(reports: Generator<Report>, times: number): Generator<Report> {
  for (const report of reports) {
    report.atMs = Math.floor(report.atMs / times);
    yield report;
  }
}

function* reports(entities: readonly MadeEntity[], seed: number): Generator<Report> {
  const random = seeded(seed + 1);
  const below = (bound: number) => Math.floor(random() * bound);
  const exponential = (mean: number) => -Math.log(1 - random()) * mean;
  const active = new Set<string>();
  const due = new Map<number, Trouble[]>();

  function later(trouble: Trouble): void {
    const second = Math.floor(trouble.atMs / secondMs);
    const list = due.get(second);
    if (list === undefined) due.set(second, [trouble]);
    else list.push(trouble);
  }

  function begin(atMs: number, entity: number, event: EventName, course: Partial<Trouble>): void {
    const key = `${entity} ${event.name}`;
    if (active.has(key)) return;
    active.add(key);
    const { severity } = event;
    const usual = {
      everyMs: 60_000,
      severity,
      left: 2 + Math.floor(exponential(17)),
      closes: random() < 0.8,
      flaps: 0,
    };
    later({ key, entity, event, atMs: Math.floor(atMs), value: below(100), ...usual, ...course });
  }

  function storm(atMs: number): void {
    const racks = entities.length / rackSize;
    const first = below(racks);
    const hit = random() < 0.25 ? 4 : 1;
    const left = 4 + below(16);
    // Entities of a rack do not stand beside each other.
    for (let entity = 0; entity < entities.length; entity++) {
      if ((entity - first + racks) % racks >= hit) continue;
      begin(atMs + random() * 3000, entity, unreachable, { everyMs: 30_000, left, closes: true });
    }
  }

  function one(atMs: number): void {
    // A tenth of the entities have half of the trouble.
    const entity = Math.floor(random() ** 3.3 * entities.length);
    const own = eventNames.get(String(entities[entity]?.metadata.type).split(".", 1)[0] ?? "") ?? [];
    const known = random() < 0.7 ? own : anywhere;
    const event = known[Math.floor(random() ** 2 * known.length)] ?? unreachable;
    const flapping = { everyMs: 10_000 + below(50_000), left: 2, closes: true, flaps: 10 + below(80) };
    begin(atMs, entity, event, random() < flapShare ? flapping : {});
  }

  /** What a trouble reports now; it is put down for its next report. */
  function report(trouble: Trouble): Report {
    const { atMs, entity, event, everyMs, severity } = trouble;
    trouble.left -= 1;
    const status = trouble.left === 0 && trouble.closes ? Status.CLOSED : Status.OPEN;
    trouble.value = Math.min(100, Math.max(0, trouble.value + below(7) - 3));
    if (trouble.left === 0 && trouble.flaps > 0) {
      trouble.flaps -= 1;
      trouble.left = 2 + below(4);
      trouble.severity = event.severity;
    } else if (random() < 0.02) {
      trouble.severity = Math.min(Severity.CRITICAL, severity + 1) as Severity;
    }
    if (trouble.left === 0) active.delete(trouble.key);
    else later({ ...trouble, atMs: atMs + Math.floor(Math.max(secondMs, everyMs * (0.9 + random() * 0.2))) });
    const summary = `${event.name} on ${entities[entity]?.metadata.name}: ${trouble.value}`;
    const metadata = { value: trouble.value, check: `${event.type}/${event.name}` };
    return { atMs, entity, name: event.name, type: event.type, severity, status, summary, metadata };
  }

  for (let second = 0; ; second++) {
    if (random() < beginsASecond) {
      const atMs = (second + random()) * secondMs;
      if (random() < stormShare) storm(atMs);
      else one(atMs);
    }
    const now = due.get(second) ?? [];
    due.delete(second);
    for (const trouble of now.sort((a, b) => a.atMs - b.atMs)) yield report(trouble);
  }
}
