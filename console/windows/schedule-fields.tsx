import { clone, create } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import {
  type MaintenanceWindowSchema,
  type Recurrence,
  RecurrenceSchema,
  RunMode,
  type Schedule,
  ScheduleSchema,
  WindowStatus,
} from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import clauseLook from "../clause/clause.module.css";
import { DurationField } from "../form/duration-field.tsx";
import { ChoiceField, Field, FieldErrors, NumberField, TextField } from "../form/fields.tsx";
import formLook from "../form/form.module.css";
import type { Form } from "../form/form.ts";
import ui from "../ui/ui.module.css";
import { dayNames, daysOf, monthNames, partText } from "./recurrence-words.ts";
import { clockText, momentOf } from "./zone-clock.ts";

/** The form of a window. */
export type WindowFormState = Form<typeof MaintenanceWindowSchema>;

const zones = Intl.supportedValuesOf("timeZone");

const types = [
  ["0", "Once"],
  ["1", "Every so many minutes"],
  ["2", "Every so many hours"],
  ["3", "By days"],
  ["4", "By weeks"],
  ["5", "By months"],
  ["6", "By years"],
  ["7", "As in cron"],
] as const;

const units: Readonly<Record<string, string>> = {
  "1": "minutes",
  "2": "hours",
  "3": "days",
  "4": "weeks",
  "5": "months",
  "6": "years",
};

/** Lengths of runs that begin at once. */
const immediateDurations = [
  ["30 min", 1_800_000],
  ["2 h", 7_200_000],
  ["8 h", 28_800_000],
] as const;

/** Returns the schedule in a form; empty where the form has none. */
const scheduleOf = ({ value }: WindowFormState) => value.schedule ?? create(ScheduleSchema);

const changeSchedule = (form: WindowFormState, part: Partial<Schedule>) =>
  form.change({ schedule: Object.assign(clone(ScheduleSchema, scheduleOf(form)), part) });

/** Edits the schedule of a window; starts a new one now with one press. */
export function ScheduleFields({ form, isNew }: { form: WindowFormState; isNew: boolean }) {
  const schedule = scheduleOf(form);
  const put = (part: Partial<Schedule>) => changeSchedule(form, part);
  const { recurrence, timeZone, duration } = schedule;
  const type = String(recurrence?.type ?? 0n);
  const setType = (next: string) => {
    put({ recurrence: next === "0" ? undefined : recurrenceOf(schedule, next) });
  };
  return (
    <fieldset>
      <legend>When it runs</legend>
      {isNew && (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset would be drawn as a part of the form
        <div class={ui.buttons} role="group" aria-label="Start now">
          <span class={clauseLook.label}>Start now for</span>
          {immediateDurations.map(([words, ms]) => (
            <button
              key={words}
              type="button"
              disabled={form.sending}
              onClick={() => {
                put({ start: BigInt(Date.now()), duration: BigInt(ms), recurrence: undefined, skipNext: 0n });
                form.change({ runMode: RunMode.AUTO, status: WindowStatus.ENABLED });
                // The browser would check the inputs as they are drawn still, with the values before.
                void form.submit();
              }}
            >
              {words}
            </button>
          ))}
          <span class={ui.hint}>Creates the window and starts it immediately.</span>
        </div>
      )}
      <StartField form={form} schedule={schedule} put={put} />
      <DurationField
        form={form}
        path="schedule.duration"
        label="A run takes"
        required
        value={duration === 0n ? undefined : Number(duration) / 1000}
        set={(seconds) => put({ duration: BigInt(Math.round((seconds ?? 0) * 1000)) })}
      />
      <TextField
        form={form}
        path="schedule.timeZone"
        label="Time zone"
        help="Runs keep their time of the day in this zone when its clock is changed."
        value={timeZone}
        suggestions={zones}
        placeholder="UTC"
        set={(zone) => put({ timeZone: zone, start: movedStart(schedule, zone) })}
      />
      <ChoiceField
        form={form}
        path="schedule.recurrence.type"
        label="Repeats"
        value={type as "0"}
        choices={types}
        set={setType}
      />
      {recurrence && <RecurrenceFields form={form} recurrence={recurrence} put={put} />}
    </fieldset>
  );
}

/** Edits how many of the next runs are left out. */
export function SkipField({ form }: { form: WindowFormState }) {
  return (
    <NumberField
      form={form}
      path="schedule.skipNext"
      label="Runs to skip"
      help="How many of the next runs are left out."
      whole
      value={Number(scheduleOf(form).skipNext)}
      set={(count) => changeSchedule(form, { skipNext: BigInt(count ?? 0) })}
    />
  );
}

/** The start stays at its time of the day when another zone is chosen. */
function movedStart({ start, timeZone }: Schedule, zone: string): bigint {
  const moment = start === 0n ? undefined : momentOf(clockText(Number(start), timeZone), zone);
  return moment === undefined ? start : BigInt(moment);
}

/**
 * A recurrence of this type. It keeps what the one before has in common with it; what that lacks is as the start is, so that the first
 * run is at the start.
 */
function recurrenceOf({ recurrence, start, timeZone }: Schedule, type: string): Recurrence {
  const before = recurrence ?? create(RecurrenceSchema);
  const [date = "", time = ""] = clockText(Number(start) || Date.now(), timeZone).split("T");
  const [, month = "", day = ""] = date.split("-");
  const [hour = "", minute = ""] = time.split(":");
  const next = create(RecurrenceSchema, {
    type: BigInt(type),
    interval: type === "7" ? 0n : before.interval || 1n,
  });
  const kept = (value: Value | undefined, known: RegExp, otherwise: string) =>
    known.test(partText(value)) ? value : valueOf(String(Number(otherwise)));
  switch (type) {
    case "4":
      return Object.assign(next, { dayOfWeek: before.dayOfWeek || weekdayOf(date) });
    case "5":
      return Object.assign(next, { dayOfMonth: kept(before.dayOfMonth, dayPattern, day) });
    case "6": {
      const dayOfMonth = kept(before.dayOfMonth, dayPattern, day);
      return Object.assign(next, { dayOfMonth, month: kept(before.month, monthPattern, month) });
    }
    case "7": {
      const { dayOfWeek, dayOfMonth, month: months } = before;
      return Object.assign(next, {
        dayOfWeek,
        dayOfMonth,
        month: months,
        cronMinutes: valueOf(String(Number(minute))),
        cronHours: valueOf(String(Number(hour))),
      });
    }
    default:
      return next;
  }
}

const dayPattern = /^(?:-1|[1-9]|[12]\d|3[01])$/;
const monthPattern = /^(?:[1-9]|1[0-2])$/;

const weekdayOf = (date: string) => dayNames[(new Date(`${date}T00:00Z`).getUTCDay() + 6) % 7]?.[0] ?? "";

interface PartProps {
  readonly form: WindowFormState;
  put(part: Partial<Schedule>): void;
}

function StartField({ form, schedule, put }: PartProps & { schedule: Schedule }) {
  const { start, timeZone } = schedule;
  const typed = useSignal<string | undefined>(undefined);
  const shown = start === 0n ? "" : clockText(Number(start), timeZone);
  const set = (text: string) => {
    typed.value = text;
    put({ start: BigInt(momentOf(text, timeZone) ?? 0) });
  };
  const own = typed.value !== undefined && BigInt(momentOf(typed.value, timeZone) ?? 0) === start;
  const missing = own && typed.value && start !== 0n && typed.value.slice(0, 16) !== shown;
  return (
    <Field
      form={form}
      path="schedule.start"
      label="Start of the first run"
      help={`By the clock of ${timeZone || "UTC"}. No run begins before it.`}
    >
      {(tied) => (
        <>
          <input
            {...tied}
            type="datetime-local"
            required
            value={own ? typed.value : shown}
            onInput={({ currentTarget }) => set(currentTarget.value)}
          />
          {missing && (
            <p class={ui.state} data-tone="warning" role="status">
              ▲ {typed.value?.slice(11, 16)} does not exist on that day: the clock is put forward. The first run begins
              at {shown.slice(11)}, and later runs keep that time.
            </p>
          )}
        </>
      )}
    </Field>
  );
}

/** A number where it is one, else text: cron has both. */
function valueOf(text: string): Value | undefined {
  if (text.trim() === "") return undefined;
  const isNumber = /^-?\d{1,4}$/.test(text);
  return create(ValueSchema, {
    kind: isNumber ? { case: "numberValue", value: Number(text) } : { case: "stringValue", value: text },
  });
}

const cronFields = [
  ["cronMinutes", "Minutes", "0 to 59"],
  ["cronHours", "Hours", "0 to 23"],
  ["dayOfMonth", "Days of the month", "1 to 31, or -1 for the last"],
  ["month", "Months", "1 to 12, or JAN to DEC"],
  ["year", "Years", "1970 to 9999"],
] as const;

function RecurrenceFields({ form, recurrence, put }: PartProps & { recurrence: Recurrence }) {
  const change = (part: Partial<Recurrence>) =>
    put({ recurrence: Object.assign(clone(RecurrenceSchema, recurrence), part) });
  const type = Number(recurrence.type);
  if (type === 7) return <CronFields form={form} recurrence={recurrence} change={change} />;
  return (
    <>
      <NumberField
        form={form}
        path="schedule.recurrence.interval"
        label="Every"
        unit={units[String(type)] ?? ""}
        whole
        required
        value={recurrence.interval === 0n ? undefined : Number(recurrence.interval)}
        set={(count) => change({ interval: BigInt(count ?? 0) })}
      />
      {type === 4 && <Weekdays form={form} recurrence={recurrence} change={change} />}
      {type === 6 && (
        <ChoiceField
          form={form}
          path="schedule.recurrence.month"
          label="Month"
          value={partText(recurrence.month)}
          choices={withChoose(
            partText(recurrence.month),
            monthNames.map((name, at) => [String(at + 1), name] as const),
          )}
          set={(month) => change({ month: valueOf(month) })}
        />
      )}
      {type >= 5 && (
        <ChoiceField
          form={form}
          path="schedule.recurrence.dayOfMonth"
          label="Day of the month"
          help="A month without this day has no run."
          value={partText(recurrence.dayOfMonth)}
          choices={withChoose(partText(recurrence.dayOfMonth), [
            ...Array.from({ length: 31 }, (_, at) => [String(at + 1), String(at + 1)] as const),
            ["-1", "the last"],
          ])}
          set={(day) => change({ dayOfMonth: valueOf(day) })}
        />
      )}
    </>
  );
}

type Choices = readonly (readonly [value: string, word: string])[];

/** Choices, and an empty one first while nothing is chosen. */
const withChoose = (value: string, choices: Choices): Choices =>
  value === "" ? [["", "Choose"], ...choices] : choices;

interface ChangeProps {
  readonly form: WindowFormState;
  readonly recurrence: Recurrence;
  change(part: Partial<Recurrence>): void;
}

function CronFields({ form, recurrence, change }: ChangeProps) {
  return (
    <>
      {cronFields.map(([name, label, values]) => (
        <TextField
          key={name}
          form={form}
          label={label}
          path={`schedule.recurrence.${name}`}
          help={`${values}; also ranges a-b, steps */n, and lists.`}
          placeholder="*"
          value={partText(recurrence[name])}
          required={name === "cronMinutes"}
          set={(text) => change({ [name]: valueOf(text) })}
        />
      ))}
      <TextField
        form={form}
        path="schedule.recurrence.dayOfWeek"
        label="Days of the week"
        help="MON to SUN, or 0 to 7. With days of the month too, either will do."
        placeholder="*"
        value={recurrence.dayOfWeek}
        set={(dayOfWeek) => change({ dayOfWeek })}
      />
    </>
  );
}

function Weekdays({ form, recurrence, change }: ChangeProps) {
  const chosen = daysOf(recurrence.dayOfWeek);
  if (chosen === undefined) {
    return (
      <TextField
        form={form}
        path="schedule.recurrence.dayOfWeek"
        label="Days of the week"
        value={recurrence.dayOfWeek}
        set={(dayOfWeek) => change({ dayOfWeek })}
      />
    );
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be drawn as a part of the form
    <div class={formLook.field} role="group" aria-label="Days of the week">
      <span class={clauseLook.label} aria-hidden="true">
        Days of the week
      </span>
      <span class={ui.inline}>
        {dayNames.map(([short, name]) => (
          <label key={short} class={ui.inline}>
            <input
              type="checkbox"
              checked={chosen.includes(short)}
              onChange={({ currentTarget }) => {
                const next = currentTarget.checked ? [...chosen, short] : chosen.filter((each) => each !== short);
                change({ dayOfWeek: dayNames.flatMap(([each]) => (next.includes(each) ? [each] : [])).join(",") });
              }}
            />
            {name}
          </label>
        ))}
      </span>
      <FieldErrors form={form} path="schedule.recurrence.dayOfWeek" label="Days of the week" />
    </div>
  );
}
