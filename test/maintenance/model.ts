/** A window of the test: by ids or by a query over the same sources. */
export interface ModelSpec {
  sources: readonly string[];
  byQuery: boolean;
  manual: boolean;
  disabled: boolean;
  startMs: number;
  durationMs: number;
  /** Minutes between runs; undefined: there is one. */
  everyMin: number | undefined;
  skipNext: number;
  state: number;
  /** With overrideExitState. */
  exit: number | undefined;
  force: boolean;
  children: boolean;
}

interface Stay {
  startMs: number;
  state: number;
  exit: number | undefined;
}

export interface ModelEntity {
  /** What its last model named. */
  named: number | undefined;
  /** The state that it goes back to. */
  own: number;
  parent: string | undefined;
  deleted: boolean;
  /** The open windows that it is in, by their names. */
  stays: Map<string, Stay>;
}

export interface ModelWindow {
  spec: ModelSpec;
  skipNext: number;
  /** The last start by the schedule whose run has begun or was skipped. */
  handledMs: number;
  /** Starts up to this one came too late for a run of this schedule. */
  overMs: number;
  run: { startMs: number; endMs: number } | undefined;
  lastStartMs: number | undefined;
  /** Windows that start at the same moment: the one that was created last rules. */
  order: number;
}

const PRODUCTION = 1000;

/** What windows should do to production states, in the plainest words; all of it happens at once. */
export class WindowModel {
  readonly entities = new Map<string, ModelEntity>();
  readonly windows = new Map<string, ModelWindow>();
  /** Runs that began and ended. */
  readonly told: string[] = [];
  nowMs: number;
  private created = 0;

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  put(source: string, named: number | undefined, parent: string | undefined) {
    const before = this.entities.get(source);
    const entity = before ?? { named, own: named ?? PRODUCTION, parent, deleted: false, stays: new Map() };
    if (before !== undefined && (before.deleted || before.named !== named)) entity.own = named ?? PRODUCTION;
    this.entities.set(source, Object.assign(entity, { named, parent, deleted: false }));
  }

  deleteEntity(source: string) {
    const entity = this.entities.get(source);
    if (entity !== undefined) entity.deleted = true;
  }

  /** The state of a living entity: that of the window that started last, else its own. */
  stateOf({ own, stays }: ModelEntity): number {
    const open = [...stays].map(([name, stay]) => ({ ...stay, order: this.windows.get(name)?.order ?? 0 }));
    open.sort((a, b) => b.startMs - a.startMs || b.order - a.order);
    return open[0]?.state ?? own;
  }

  create(name: string, spec: ModelSpec) {
    const { skipNext, durationMs } = spec;
    const overMs = this.nowMs - durationMs;
    this.created += 1;
    const order = this.created;
    this.windows.set(name, { spec, skipNext, handledMs: 0, overMs, run: undefined, lastStartMs: undefined, order });
    this.tick();
  }

  replace(name: string, spec: ModelSpec) {
    const window = this.windows.get(name) as ModelWindow;
    const before = window.spec;
    Object.assign(window, {
      spec,
      skipNext: spec.skipNext,
      overMs: this.nowMs - spec.durationMs,
    });
    if (window.run !== undefined && spec.disabled) this.end(name, window);
    else if (window.run !== undefined) {
      if (spec.durationMs !== before.durationMs) {
        window.run.endMs = Math.max(this.nowMs, window.run.startMs + spec.durationMs);
      }
      // A run that ends now is not changed any more.
      if (window.run.endMs > this.nowMs) this.enter(name, window);
    }
    this.tick();
  }

  delete(name: string) {
    const window = this.windows.get(name) as ModelWindow;
    if (window.run !== undefined) this.end(name, window);
    this.windows.delete(name);
  }

  /** Whether it may. */
  start(name: string): boolean {
    const window = this.windows.get(name) as ModelWindow;
    if (window.spec.disabled || window.run !== undefined) return false;
    this.begin(name, window, Math.max(this.nowMs, (window.lastStartMs ?? 0) + 1));
    return true;
  }

  stop(name: string): boolean {
    const window = this.windows.get(name) as ModelWindow;
    if (window.run === undefined) return false;
    this.end(name, window);
    return true;
  }

  /** The starts of a window by its schedule that are ahead, up to a moment. */
  private startsOf({ spec, handledMs, overMs }: ModelWindow, untilMs: number): number[] {
    const { startMs, everyMin, manual, disabled } = spec;
    if (manual || disabled) return [];
    const afterMs = Math.max(handledMs, overMs);
    const starts: number[] = [];
    for (let at = startMs; at <= untilMs; at += (everyMin ?? 0) * 60_000) {
      if (at > afterMs) starts.push(at);
      if (everyMin === undefined) break;
    }
    return starts;
  }

  /** The next moment at which something happens by itself, up to another. */
  nextMs(untilMs: number): number | undefined {
    const moments = [...this.windows.values()].flatMap((window) => [
      ...(window.run === undefined ? [] : [window.run.endMs]),
      ...this.startsOf(window, untilMs).slice(0, 1),
    ]);
    const next = Math.min(...moments);
    return next <= untilMs ? next : undefined;
  }

  /** Lets pass what is due by now, all at once: each window on its own, in the order of its times. */
  tick() {
    for (const [name, window] of this.windows) {
      const { spec } = window;
      for (const startMs of this.startsOf(window, this.nowMs)) {
        if (window.run !== undefined && window.run.endMs <= startMs) this.end(name, window);
        if (window.skipNext > 0) {
          window.skipNext -= 1;
          window.handledMs = startMs;
        } else if (startMs + spec.durationMs > this.nowMs) {
          window.handledMs = startMs;
          if (window.run === undefined) this.begin(name, window, startMs);
          else {
            window.run.endMs = Math.max(window.run.endMs, startMs + spec.durationMs);
            this.enter(name, window);
          }
        } else window.overMs = startMs;
      }
      if (window.run !== undefined && window.run.endMs <= this.nowMs) this.end(name, window);
    }
  }

  private begin(name: string, window: ModelWindow, atMs: number) {
    const startMs = Math.max(atMs, (window.lastStartMs ?? -1) + 1);
    window.run = { startMs, endMs: atMs + window.spec.durationMs };
    window.lastStartMs = startMs;
    this.told.push(`${name} start`);
    this.enter(name, window);
  }

  /** Takes in the entities that are meant now, and lets go those that are not any more. */
  private enter(name: string, { spec, run }: ModelWindow) {
    const inside = new Set<string>();
    const take = (source: string) => {
      const entity = this.entities.get(source);
      if (entity === undefined || entity.deleted || inside.has(source)) return;
      if (entity.own === -1 && !spec.force) return;
      inside.add(source);
      entity.stays.set(name, { startMs: run?.startMs ?? 0, state: spec.state, exit: spec.exit });
      if (!spec.children) return;
      for (const [child, { parent }] of this.entities) if (parent === source) take(child);
    };
    for (const source of spec.sources) take(source);
    for (const [source, entity] of this.entities) if (!inside.has(source)) this.leave(name, entity);
  }

  private end(name: string, window: ModelWindow) {
    window.run = undefined;
    this.told.push(`${name} end`);
    for (const entity of this.entities.values()) this.leave(name, entity);
  }

  private leave(name: string, entity: ModelEntity) {
    const stay = entity.stays.get(name);
    if (stay === undefined) return;
    entity.stays.delete(name);
    entity.own = stay.exit ?? entity.own;
  }
}
