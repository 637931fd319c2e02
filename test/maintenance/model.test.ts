import { fromJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { MaintenanceWindowSchema } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { transaction } from "../../src/db/transaction.ts";
import { entityId, idText } from "../../src/entities/identity.ts";
import { putModels } from "../../src/entities/put.ts";
import { claim, finish } from "../../src/jobs/queue.ts";
import { membersJob } from "../../src/maintenance/members.ts";
import { type OnRuns, runsJob } from "../../src/maintenance/run.ts";
import {
  createWindow,
  deleteWindows,
  replaceWindow,
  startWindow,
  stopWindow,
  type Writing,
} from "../../src/maintenance/windows.ts";
import { testDatabase } from "../support/database.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { type ModelSpec, WindowModel } from "./model.ts";

const { sql } = await testDatabase();
const runs = Number(process.env.MODEL_RUNS ?? 25);
const beginMs = Date.UTC(2027, 0, 1);
const minuteMs = 60_000;
const sources = ["a", "b", "c", "d", "e", "f"];
const names = ["one", "two", "three"];

/** The service's own functions, at a moment that the test chooses. */
class Real {
  readonly ids = new Map<string, string>();
  readonly told: string[] = [];
  readonly released: string[] = [];
  readonly tenant: TestTenant;
  modelMs = beginMs - minuteMs;
  readonly kinds;
  constructor(tenant: TestTenant) {
    this.tenant = tenant;
    const onReleased = async (_: unknown, __: string, ids: readonly Buffer[]) =>
      void this.released.push(...ids.map(idText));
    this.kinds = [runsJob(this.onRuns, () => undefined), membersJob(onReleased)];
  }

  readonly onRuns: OnRuns = async (_, __, notices) => {
    for (const { windowName, what, message } of notices) this.told.push(`${windowName} ${what} ${message}`);
  };

  async write<T>(nowMs: number, work: (tx: Parameters<typeof createWindow>[0], writing: Writing) => Promise<T>) {
    const writing = { tenant: this.tenant, clientName: "test", nowMs, onRuns: this.onRuns };
    return await transaction(sql, (tx) => work(tx, writing));
  }

  async put(source: string, metadata: Record<string, unknown>) {
    this.modelMs += 1;
    const model = { timestampMs: BigInt(this.modelMs), dimensions: { source }, metadata };
    await putModels(sql, this.tenant.id, [model], this.modelMs);
  }

  /** Does the jobs that are due, as the worker does. */
  async work(nowMs: number) {
    for (const kind of this.kinds) {
      const lane = { tenantId: this.tenant.id, kind: kind.name };
      for (;;) {
        const jobs = await claim(sql, lane, { sizeMax: kind.sizeMax, leaseMs: 10_000, nowMs });
        if (jobs.length === 0) break;
        await transaction(sql, async (tx) => {
          const again = await kind.run(tx, lane.tenantId, jobs, nowMs);
          await finish(tx, lane, jobs, again);
        });
      }
    }
  }

  async compare(model: WindowModel) {
    await this.work(model.nowMs);
    const tenantId = this.tenant.id;
    const rows = await sql<{ source: string; state: number }[]>`
      select dimensions ->> 'source' as source,
        coalesce(window_production_state, model_production_state, 1000)::float8 as state
      from entities where tenant_id = ${tenantId} and deleted_ms is null`;
    const living = [...model.entities].filter(([, { deleted }]) => !deleted);
    expect(Object.fromEntries(rows.map(({ source, state }) => [source, state]))).toEqual(
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
    const [members] = await sql<[{ count: number }]>`
      select count(*)::int4 as count from maintenance_members where tenant_id = ${tenantId}`;
    const stays = [...model.entities.values()].reduce((sum, { stays }) => sum + stays.size, 0);
    expect(members.count).toBe(stays);
  }
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
      await run(model, real);
      await real.compare(model);
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
        await real.put(source, {
          ...(named !== undefined && { productionState: named }),
          ...(parent !== undefined && { parent: `source=${parent}` }),
        });
      }),
    ),
  fc.constantFrom(...sources).map((source) =>
    command(`delete entity ${source}`, async (model, real) => {
      if (!model.entities.has(source)) return;
      model.deleteEntity(source);
      await real.put(source, { _svc_deleted_entity: true });
    }),
  ),
  ...[1, 2].map(() =>
    fc.record({ name: fc.constantFrom(...names), spec }).map(({ name, spec }) =>
      command(`window ${name} ${text(spec)}`, async (model, real) => {
        const { nowMs } = model;
        const sent = { ...spec, startMs: nowMs + spec.startMs };
        if (!hasFuture(sent, nowMs)) return;
        const specification = toSpecification(real.tenant.id, name, sent);
        const id = real.ids.get(name);
        if (id === undefined) {
          model.create(name, sent);
          real.ids.set(name, (await real.write(nowMs, (tx, writing) => createWindow(tx, specification, writing))).id);
        } else {
          model.replace(name, sent);
          await real.write(nowMs, (tx, writing) => replaceWindow(tx, id, specification, writing));
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
      await real.write(model.nowMs, (tx, writing) => deleteWindows(tx, [id], writing));
    }),
  ),
  ...(["start", "stop"] as const).map((verb) =>
    fc.constantFrom(...names).map((name) =>
      command(`${verb} ${name}`, async (model, real) => {
        const id = real.ids.get(name);
        if (id === undefined) return;
        const act = verb === "start" ? startWindow : stopWindow;
        const done = real.write(model.nowMs, (tx, writing) => act(tx, id, writing));
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
          await real.work(next);
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
      const real = new Real(await testTenant(sql));
      await fc.asyncModelRun(() => ({ model: new WindowModel(beginMs), real }), sequence);
    }),
    { numRuns: runs, endOnFailure: runs < 50 },
  );
}, 300_000);
