import { fromJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { MaintenanceWindowSchema } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { entityId, idText } from "../../src/entities/identity.ts";
import type { WindowHooks } from "../../src/maintenance/hooks.ts";
import { entitiesInWindows } from "../../src/maintenance/members.ts";
import { createWindow, deleteWindows, replaceWindow, startWindow, stopWindow } from "../../src/maintenance/windows.ts";
import { cases } from "../support/cases.ts";
import { testDatabase } from "../support/database.ts";
import { type Clockwork, clockwork } from "./clockwork.ts";
import { type ModelSpec, WindowModel } from "./model.ts";

const { sql } = await testDatabase();
const runs = cases(32);
const beginMs = Date.UTC(2027, 0, 1);
const minuteMs = 60_000;
const sources = ["a", "b", "c", "d", "e", "f"];
const names = ["one", "two", "three"];

/** The service, and what it has told. */
class Real {
  readonly ids = new Map<string, string>();
  readonly told: string[] = [];
  readonly released = new Set<string>();
  readonly service: Clockwork;
  constructor(service: Clockwork) {
    this.service = service;
  }

  async compare(model: WindowModel, insideBefore: ReadonlySet<string>) {
    const tenantId = this.service.tenant.id;
    await this.service.work(model.nowMs);
    const living = [...model.entities].filter(([, { deleted }]) => !deleted);
    expect(await this.service.states()).toEqual(
      Object.fromEntries(living.map(([source, entity]) => [source, model.stateOf(entity)])),
    );
    const windows = await sql<{ name: string; running: boolean; skip: number; ends: number | null }[]>`
      select name, run_state = 1 as running, skip_next as skip, run_end_ms::float8 as ends from maintenance_windows
      where tenant_id = ${tenantId}`;
    expect(Object.fromEntries(windows.map(({ name, ...rest }) => [name, rest]))).toEqual(
      Object.fromEntries(
        [...model.windows].map(([name, { run, skipNext }]) => [
          name,
          { running: run !== undefined, skip: skipNext, ends: run?.endMs ?? null },
        ]),
      ),
    );
    // Runs that begin and end are told once each; entities that are in no window any more are reported, too.
    expect(this.told.toSorted()).toEqual(model.told.toSorted());
    const ids = sources.map((source) => entityId(tenantId, { source }));
    const inside = (await entitiesInWindows(sql, tenantId, ids)).map(idText);
    expect(inside.toSorted()).toEqual([...insideOf(model, tenantId)].toSorted());
    const left = [...insideBefore].filter((id) => !inside.includes(id));
    expect(left.filter((id) => !this.released.has(id))).toEqual([]);
    this.released.clear();
  }
}

/** The ids of the entities that the model has in a window. */
function insideOf({ entities }: WindowModel, tenantId: string): Set<string> {
  const inside = [...entities].filter(([, { stays }]) => stays.size > 0);
  return new Set(inside.map(([source]) => idText(entityId(tenantId, { source }))));
}

function toSpecification(tenantId: string, name: string, spec: ModelSpec) {
  const target = spec.byQuery
    ? { query: { clause: { in: { field: "dimensions.source", values: spec.sources } } } }
    : { withIds: { ids: spec.sources.map((source) => idText(entityId(tenantId, { source }))) } };
  return fromJson(MaintenanceWindowSchema, {
    name,
    ...target,
    runMode: spec.manual ? 1 : 0,
    status: spec.disabled ? 1 : 0,
    schedule: {
      start: spec.startMs,
      duration: spec.durationMs,
      skipNext: spec.skipNext,
      recurrence: spec.everyMin === undefined ? null : { type: 1, interval: spec.everyMin },
    },
    maintenanceState: spec.state,
    ...(spec.exit !== undefined && { exitState: spec.exit, overrideExitState: true }),
    force: spec.force,
    doNotPropagateToChildren: !spec.children,
    notification: { message: "m", rules: [] },
  } as never);
}

type Command = fc.AsyncCommand<WindowModel, Real>;

/** A command after which everything comes to rest, so that the next one finds what the model has. */
function command(what: string, run: (model: WindowModel, real: Real) => Promise<void>): Command {
  return {
    check: () => true,
    async run(model, real) {
      const before = insideOf(model, real.service.tenant.id);
      await run(model, real);
      await real.compare(model, before);
    },
    toString: () => what,
  };
}

/** Whether the service takes it: a window that runs by itself has a run that is not over. */
const hasFuture = ({ manual, startMs, durationMs, everyMin }: ModelSpec, nowMs: number) =>
  manual || everyMin !== undefined || startMs + durationMs > nowMs;

const spec = fc.record({
  sources: fc.uniqueArray(fc.constantFrom(...sources), { minLength: 1, maxLength: 3 }),
  byQuery: fc.boolean(),
  manual: fc.boolean(),
  disabled: fc.constantFrom(false, false, false, true),
  // Minutes from now; made into a moment when the command runs.
  startMs: fc.integer({ min: -30, max: 60 }).map((minutes) => minutes * minuteMs),
  durationMs: fc.integer({ min: 1, max: 60 }).map((minutes) => minutes * minuteMs),
  everyMin: fc.option(fc.integer({ min: 5, max: 45 }), { nil: undefined }),
  skipNext: fc.constantFrom(0, 0, 0, 1, 2),
  state: fc.constantFrom(300, 301, 302, -1),
  exit: fc.option(fc.constantFrom(500, 501, -1), { nil: undefined, freq: 3 }),
  force: fc.boolean(),
  children: fc.boolean(),
});
const named = fc.constantFrom(undefined, undefined, 400, 401, -1);
const text = JSON.stringify;

const commands = [
  fc
    .record({
      source: fc.constantFrom(...sources),
      named,
      parent: fc.option(fc.constantFrom(...sources), { nil: undefined }),
    })
    .map(({ source, named, parent }) =>
      command(`model of ${source}, state ${named}, parent ${parent}`, async (model, real) => {
        model.put(source, named, parent);
        await real.service.put(source, {
          ...(named !== undefined && { productionState: named }),
          ...(parent !== undefined && { parent: `source=${parent}` }),
        });
      }),
    ),
  fc.constantFrom(...sources).map((source) =>
    command(`delete entity ${source}`, async (model, real) => {
      if (!model.entities.has(source)) return;
      model.deleteEntity(source);
      await real.service.put(source, { _svc_deleted_entity: true });
    }),
  ),
  ...[1, 2].map(() =>
    fc.record({ name: fc.constantFrom(...names), spec }).map(({ name, spec }) =>
      command(`window ${name} ${text(spec)}`, async (model, real) => {
        const { nowMs } = model;
        const sent = { ...spec, startMs: nowMs + spec.startMs };
        if (!hasFuture(sent, nowMs)) return;
        const specification = toSpecification(real.service.tenant.id, name, sent);
        const id = real.ids.get(name);
        if (id === undefined) {
          model.create(name, sent);
          real.ids.set(
            name,
            (await real.service.write(nowMs, (tx, writing) => createWindow(tx, specification, writing))).id,
          );
        } else {
          model.replace(name, sent);
          await real.service.write(nowMs, (tx, writing) => replaceWindow(tx, id, specification, writing));
        }
      }),
    ),
  ),
  fc.constantFrom(...names).map((name) =>
    command(`delete window ${name}`, async (model, real) => {
      const id = real.ids.get(name);
      if (id === undefined) return;
      model.delete(name);
      real.ids.delete(name);
      await real.service.write(model.nowMs, (tx, writing) => deleteWindows(tx, [id], writing));
    }),
  ),
  ...(["start", "stop"] as const).map((verb) =>
    fc.constantFrom(...names).map((name) =>
      command(`${verb} ${name}`, async (model, real) => {
        const id = real.ids.get(name);
        if (id === undefined) return;
        const act = verb === "start" ? startWindow : stopWindow;
        const done = real.service.write(model.nowMs, (tx, writing) => act(tx, id, writing));
        if (model[verb](name)) await done;
        else await expect(done).rejects.toMatchObject({ code: 9 });
      }),
    ),
  ),
  ...[1, 2].map(() =>
    fc.integer({ min: 1, max: 40 }).map((minutes) =>
      command(`${minutes} minutes pass`, async (model, real) => {
        const untilMs = model.nowMs + minutes * minuteMs;
        for (let next = model.nextMs(untilMs); next !== undefined; next = model.nextMs(untilMs)) {
          model.nowMs = next;
          model.tick();
          await real.service.work(next);
        }
        model.nowMs = untilMs;
      }),
    ),
  ),
  fc.integer({ min: 1, max: 200 }).map((minutes) =>
    command(`no server for ${minutes} minutes`, async (model) => {
      model.nowMs += minutes * minuteMs;
      model.tick();
    }),
  ),
];

test("whatever is done to windows, production states and runs are those of the model", async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 40, size: "max" }), async (sequence) => {
      const hooks: WindowHooks = {
        onRuns: async (_, __, notices) =>
          void real.told.push(...notices.map(({ windowName, what }) => `${windowName} ${what}`)),
        onReleased: async (_, __, ids) => {
          for (const id of ids) real.released.add(idText(id));
        },
      };
      const real = new Real(await clockwork(sql, hooks, beginMs - minuteMs));
      await fc.asyncModelRun(() => ({ model: new WindowModel(beginMs), real }), sequence);
    }),
    { numRuns: runs, endOnFailure: runs < 50 },
  );
}, 300_000);
