/** A rule of the model: as docs/notifications.md describes rules, in seconds. */
export interface ModelRule {
  id: number;
  enabled: boolean;
  triggers: string[];
  destinations: string[];
  repeat: boolean;
  repeatIntervalSec: number;
  delaySec: number;
  sendUpdates: boolean;
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
  lastToldMs: number;
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

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  setRule(name: string, rule: Omit<ModelRule, "id">) {
    const id = this.rules.get(name)?.id ?? this.nextId++;
    this.rules.set(name, { ...rule, id });
  }

  /** The delays that have ended by now: what matches no more is over, and was never told. */
  look() {
    for (const [key, memory] of this.memories) {
      if (memory.since === undefined || memory.firstDueMs === undefined || memory.firstDueMs > this.nowMs) continue;
      const rule = [...this.rules.values()].find(({ id }) => key.startsWith(`${id} `));
      if (rule === undefined || !rule.enabled) continue;
      const now = this.all.get(key.slice(key.indexOf(" ") + 1)) as ModelOccurrence;
      if (this.matches(rule, now)) memory.told = now;
      else memory.since = undefined;
      memory.firstDueMs = undefined;
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
      if (rule.enabled && rule.destinations.length > 0) this.judge(name, rule, now, reported);
    }
  }

  private judge(name: string, rule: ModelRule, now: ModelOccurrence, reported: boolean) {
    const key = `${rule.id} ${now.event} ${now.number}`;
    const memory = this.memories.get(key);
    const tell = (occasion: string) => {
      for (const each of rule.destinations) this.decided.push(`${name} ${each} ${now.event} ${now.number} ${occasion}`);
    };
    const standing = memory?.since !== undefined;
    if (!this.matches(rule, now)) {
      if (memory === undefined || !standing) return;
      memory.since = undefined;
      const endTold = memory.told.closed && now.closed;
      if (rule.sendUpdates && memory.firstDueMs === undefined && !endTold) tell("clear");
      memory.firstDueMs = undefined;
      return;
    }
    if (memory === undefined || !standing || (memory.told.closed && !now.closed)) {
      const dueMs = this.nowMs + rule.delaySec * 1000;
      const firstDueMs = rule.delaySec > 0 ? dueMs : undefined;
      this.memories.set(key, { since: this.nowMs, firstDueMs, lastToldMs: dueMs, told: now });
      tell("first");
      return;
    }
    if (memory.firstDueMs !== undefined) {
      memory.told = now;
      return;
    }
    const repeats = rule.repeat && reported && this.nowMs >= memory.lastToldMs + rule.repeatIntervalSec * 1000;
    const changes = rule.sendUpdates ? changesOf(memory.told, now) : [];
    if (changes.length === 0 && !repeats) return;
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
