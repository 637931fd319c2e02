import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { valueText } from "../ui/facts.tsx";
import { Problem } from "../ui/problem.tsx";
import ui from "../ui/ui.module.css";
import formLook from "./form.module.css";
import type { Form } from "./form.ts";
import { withoutSecrets } from "./secrets.ts";
import { writtenFields } from "./written.ts";

interface OutcomeProps<S extends DescMessage> {
  readonly form: Form<S>;
  readonly schema: S;
  /** What the button that sends says. */
  readonly send: string;
  /** More buttons beside it. */
  readonly children?: ComponentChildren;
}

const labelList = new Intl.ListFormat("en-GB", { type: "conjunction" });

/** Unfolds every section that holds an error, and brings the first error into sight, with the focus on its field. */
function showFirstError(end: HTMLElement): void {
  const form = end.closest("form");
  const errors = [...(form?.querySelectorAll<HTMLElement>('[role="alert"]') ?? [])];
  const placed = errors.filter((each) => !end.contains(each));
  const [first] = placed;
  if (form === null || first === undefined) return;
  for (const each of placed)
    for (let fold = each.closest("details"); fold; fold = fold.parentElement?.closest("details") ?? null)
      fold.open = true;
  const inputs = [...form.querySelectorAll<HTMLElement>("input, select, textarea")];
  const before = inputs.findLast((each) => first.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_PRECEDING);
  const field = first.parentElement?.querySelector<HTMLElement>("[aria-invalid]") ?? before;
  field?.focus({ preventScroll: true });
  // The end of the form lies over what is below it.
  first.scrollIntoView({ block: "center" });
}

/**
 * The end of a form: what was refused at no field of the form, what another person changed meanwhile, and the buttons. What was refused
 * at fields is said there alone: the first of them gets the focus.
 */
export function FormEnd<S extends DescMessage>({ form, schema, send, children }: OutcomeProps<S>) {
  const { failure, conflict, elsewhere, wrongLabels, sending, changed } = form;
  const placed = failure !== undefined && failure.fields.length > 0;
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (placed && end.current) showFirstError(end.current);
  }, [failure]);
  return (
    <div class={formLook.end} ref={end}>
      {conflict ? (
        <Conflict form={form} schema={schema} conflict={conflict} />
      ) : (
        !placed && <Problem failure={failure} />
      )}
      {elsewhere.map((each) => (
        <p key={each} class={ui.fieldError} role="alert">
          {each}
        </p>
      ))}
      {placed && wrongLabels.length > 0 && (
        <p class={ui.fieldError} role="status">
          Refused: see {labelList.format(wrongLabels.map((label) => `“${label}”`))}.
        </p>
      )}
      <div class={ui.buttons}>
        <button type="submit" class={ui.primary} disabled={sending}>
          {sending ? "Saving…" : send}
        </button>
        {children}
        {changed && (
          <button type="button" onClick={form.discard}>
            Discard changes
          </button>
        )}
      </div>
    </div>
  );
}

interface ConflictProps<S extends DescMessage> {
  readonly form: Form<S>;
  readonly schema: S;
  readonly conflict: MessageShape<S>;
}

/** What stands now, and what the person changed: field by field, each with what it was. */
function Conflict<S extends DescMessage>({ form, schema, conflict }: ConflictProps<S>) {
  const before = jsonOf(schema, form.stored);
  const now = jsonOf(schema, conflict);
  const mine = jsonOf(schema, form.value);
  const names = writtenFields(schema).map(({ jsonName }) => jsonName);
  const differing = names.filter((name) => new Set([before, now, mine].map((each) => textOf(each[name]))).size > 1);
  return (
    <section class={formLook.conflict} role="alert" aria-label="Changed meanwhile">
      <p>
        Another person has changed this since you opened it. Nothing of yours was saved, and nothing of yours is lost.
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">When you opened it</th>
            <th scope="col">On the server now</th>
            <th scope="col">Yours</th>
          </tr>
        </thead>
        <tbody>
          {differing.map((name) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{textOf(before[name])}</td>
              <td>{textOf(now[name])}</td>
              <td>{textOf(mine[name])}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class={ui.buttons}>
        <button type="button" onClick={() => void form.overwrite()}>
          Overwrite it with mine
        </button>
        <button type="button" onClick={form.discard}>
          Use the version on the server
        </button>
      </div>
    </section>
  );
}

function jsonOf<S extends DescMessage>(schema: S, message: MessageShape<S>): Record<string, unknown> {
  try {
    return toJson(schema, withoutSecrets(schema, message)) as Record<string, unknown>;
  } catch {
    return {};
  }
}

const textOf = (value: unknown) => (value === undefined ? "–" : valueText(value));
