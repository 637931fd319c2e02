/** A rule of the model: as docs/rules.md describes rules, in seconds. */
export interface ModelRule {
  id: number;
  enabled: boolean;
  triggers: string[];
  destinations: string[];
  repeat: boolean;
  repeatIntervalSec: number;
  delaySec: number;
  sendUpdates: boolean;
  /** 0: by reports; 1: by the clock while open; 2: while unacknowledged. */
  repeatWhile: 0 | 1 | 2;
  muteDuringMaintenance: boolean;
}

/** What a trigger looks at. */
export type ModelTrigger = { name: string } | { severity: number } | { closed: true };

export interface ModelOccurrence {
  event: string;
  number: number;
  severity: number;
  closed: boolean;
  acknowledged: boolean;
}

/** What a rule remembers of an occurrence. */
interface Memory {
  /** Undefined: it does not match. */
  since: number | undefined;
  /** The first notification waits for a look at this time; undefined: it was looked at, or had no delay. */
  firstDueMs: number | undefined;
  /** Undefined: nothing was sent. */
  lastToldMs: number | undefined;
  /** Something is not sent because of maintenance. */
  muted: boolean;
  told: ModelOccurrence;
}

/** The plain rules of when notifications are decided: one occurrence, one rule, one moment at a time. */
export class RuleModel {
  nowMs: number;
  readonly rules = new Map<string, ModelRule>();
  readonly triggers = new Map<string, ModelTrigger>();
  readonly occurrences = new Map<string, ModelOccurrence>();
  private readonly all = new Map<string, ModelOccurrence>();
  private readonly memories = new Map<string, Memory>();
  /** What was decided: rule, destination, event, number and occasion, in order. */
  readonly decided: string[] = [];
  private nextId = 1;
  inMaintenance = false;

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  setRule(name: string, rule: Omit<ModelRule, "id">) {
    const before = this.rules.get(name);
    const now = { ...rule, id: before?.id ?? this.nextId++ };
    this.rules.set(name, now);
    this.lookAtStanding(name, now, before?.enabled === false);
  }

  setTrigger(name: string, trigger: ModelTrigger) {
    this.triggers.set(name, trigger);
    for (const [ruleName, rule] of this.rules)
      if (rule.triggers.includes(name)) this.lookAtStanding(ruleName, rule, false);
  }

  setMaintenance(begins: boolean) {
    this.inMaintenance = begins;
    if (!begins) this.lookAt(({ muted }) => muted);
  }

  /** The delays that have ended by now: what matches no more is over, and was never sent; then what repeats by the clock. */
  look() {
    this.lookAt(({ firstDueMs }) => firstDueMs !== undefined && firstDueMs <= this.nowMs, { delayEnds: true });
    this.lookAt((_, { repeatWhile }) => repeatWhile !== 0);
  }

  private lookAtStanding(name: string, rule: ModelRule, enabled: boolean) {
    if (!rule.enabled) return;
    for (const [key, memory] of this.memories) {
      if (memory.since === undefined || !key.startsWith(`${rule.id} `)) continue;
      const over = enabled && memory.firstDueMs !== undefined && memory.firstDueMs <= this.nowMs;
      if (over) this.end(rule, memory);
      else this.judge(name, rule, this.all.get(key.slice(key.indexOf(" ") + 1)) as ModelOccurrence, {});
    }
  }

  private lookAt(concerns: (memory: Memory, rule: ModelRule) => boolean, how: { delayEnds?: boolean } = {}) {
    for (const [key, memory] of this.memories) {
      const found = [...this.rules].find(([, { id }]) => key.startsWith(`${id} `));
      if (memory.since === undefined || !found?.[1].enabled || !concerns(memory, found[1])) continue;
      this.judge(found[0], found[1], this.all.get(key.slice(key.indexOf(" ") + 1)) as ModelOccurrence, how);
    }
  }

  report(event: string, severity: number, closed: boolean) {
    const latest = this.occurrences.get(event);
    const opens = latest === undefined || (latest.closed && !closed);
    const number = (latest?.number ?? 0) + (opens ? 1 : 0);
    const next = opens
      ? { event, number, severity, closed, acknowledged: false }
      : latest.closed
        ? latest
        : { ...latest, severity, closed };
    this.occurrences.set(event, next);
    this.see(next, true);
  }

  set(event: string, change: Partial<Pick<ModelOccurrence, "closed" | "acknowledged">>) {
    const before = this.occurrences.get(event);
    if (before === undefined) return;
    const next = { ...before, ...change };
    if (next.closed === before.closed && next.acknowledged === before.acknowledged) return;
    this.occurrences.set(event, next);
    this.see(next, false);
  }

  private matches({ triggers }: ModelRule, { event, severity, closed }: ModelOccurrence): boolean {
    return triggers.some((name) => {
      const trigger = this.triggers.get(name) as ModelTrigger;
      if ("closed" in trigger) return closed;
      if (closed) return false;
      return "name" in trigger ? event.startsWith(trigger.name) : severity >= trigger.severity;
    });
  }

  private see(now: ModelOccurrence, reported: boolean) {
    this.all.set(`${now.event} ${now.number}`, now);
    for (const [name, rule] of this.rules) {
      if (rule.enabled && rule.destinations.length > 0) this.judge(name, rule, now, { reported });
    }
  }

  /** A match that was never sent holds the next one back no longer than itself. */
  private end(rule: ModelRule, memory: Memory) {
    if (memory.firstDueMs !== undefined) memory.lastToldMs = memory.firstDueMs - rule.repeatIntervalSec * 1000;
    Object.assign(memory, { since: undefined, firstDueMs: undefined, muted: false });
  }

  private judge(
    name: string,
    rule: ModelRule,
    now: ModelOccurrence,
    { reported = false, delayEnds = false }: { reported?: boolean; delayEnds?: boolean },
  ) {
    const key = `${rule.id} ${now.event} ${now.number}`;
    const memory = this.memories.get(key);
    const silent = rule.muteDuringMaintenance && this.inMaintenance;
    const intervalMs = rule.repeatIntervalSec * 1000;
    const tell = (occasion: string) => {
      for (const each of rule.destinations) this.decided.push(`${name} ${each} ${now.event} ${now.number} ${occasion}`);
    };
    const standing = memory?.since !== undefined;
    if (!this.matches(rule, now)) {
      if (memory === undefined || !standing) return;
      const endTold = memory.told.closed && now.closed;
      const wasTold = memory.lastToldMs !== undefined && memory.firstDueMs === undefined;
      if (rule.sendUpdates && wasTold && !endTold) tell("clear");
      return this.end(rule, memory);
    }
    if (memory === undefined || !standing || (memory.told.closed && !now.closed)) {
      const since = this.nowMs;
      if (silent) {
        this.memories.set(key, { since, firstDueMs: undefined, lastToldMs: undefined, muted: true, told: now });
        return;
      }
      const again = rule.repeat && memory?.lastToldMs !== undefined ? memory.lastToldMs + intervalMs : 0;
      const dueMs = Math.max(since + rule.delaySec * 1000, again);
      const firstDueMs = dueMs > since ? dueMs : undefined;
      this.memories.set(key, { since, firstDueMs, lastToldMs: dueMs, muted: false, told: now });
      return tell("first");
    }
    // An end is sent in maintenance, too.
    const closes = rule.sendUpdates && now.closed && !memory.told.closed;
    const quiet = silent && !(closes && memory.lastToldMs !== undefined && memory.firstDueMs === undefined);
    if (memory.muted && quiet) return;
    const released = memory.muted;
    memory.muted = false;
    if (released && memory.lastToldMs === undefined) {
      Object.assign(memory, { told: now, lastToldMs: this.nowMs });
      return tell("first");
    }
    if (memory.firstDueMs !== undefined) {
      if (!delayEnds || !silent) memory.told = now;
      if (!delayEnds) return;
      memory.firstDueMs = undefined;
      if (silent) Object.assign(memory, { muted: true, lastToldMs: undefined });
      return;
    }
    const may =
      rule.repeatWhile === 0 ? reported || released : !now.closed && (rule.repeatWhile === 1 || !now.acknowledged);
    const repeats = rule.repeat && may && this.nowMs >= (memory.lastToldMs ?? Infinity) + intervalMs;
    const changes = rule.sendUpdates ? changesOf(memory.told, now) : [];
    if (changes.length === 0 && !repeats) return;
    if (quiet) {
      memory.muted = true;
      return;
    }
    for (const each of changes.length > 0 ? changes : ["repeat"]) tell(each);
    memory.told = now;
    if (repeats) memory.lastToldMs = this.nowMs;
  }
}

function changesOf(told: ModelOccurrence, now: ModelOccurrence): string[] {
  if (now.closed && !told.closed) return ["clear"];
  return [
    ...(now.severity === told.severity ? [] : ["severity"]),
    ...(now.acknowledged === told.acknowledged ? [] : [now.acknowledged ? "acknowledged" : "unacknowledged"]),
  ];
}
