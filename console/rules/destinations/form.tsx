import { clone, create } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import {
  type Destination,
  DestinationSchema,
  type DestinationType,
} from "#gen/belfry/notifications/v1/destination_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { may } from "../../data/session.ts";
import { AboutFields } from "../../form/about-fields.tsx";
import { ChoiceField, NumberField, TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import { blank, type Form, useForm } from "../../form/form.ts";
import { FormEnd } from "../../form/outcome.tsx";
import { sameSecrets, storedSecret } from "../../form/secrets.ts";
import { ShownOnce } from "../../ui/shown-once.tsx";
import type { KindName } from "./kinds/kind.ts";
import { emptyType, kindNames, kindOf } from "./kinds.ts";
import { TestOfDestination } from "./test-panel.tsx";

const destinations = clientOf(DestinationService);

/** What distinguishes the unsent text of a stored destination from that of others. */
export const draftOf = (name: string) => `destination/of/${name}`;

interface DestinationFormProps {
  /** The one to change; absent: a new one is made. */
  readonly stored?: Destination;
  onSaved(destination: Destination): void;
}

/** The form of a destination, new or stored, with its test. */
export function DestinationForm({ stored, onSaved }: DestinationFormProps) {
  const first = useMemo(() => stored ?? blank(DestinationSchema, { type: emptyType("email") }), [stored]);
  const made = useSignal<{ readonly secret: string; readonly destination: Destination } | undefined>(undefined);
  const form: Form<typeof DestinationSchema> = useForm(DestinationSchema, {
    key: stored ? draftOf(stored.name) : "destination/new",
    stored: first,
    prefix: "destination",
    async send(value) {
      const { destination, secret } = await save(value, stored && form.stored, onSaved);
      if (secret !== undefined) made.value = { secret, destination };
      return destination;
    },
    done(destination) {
      if (made.peek() === undefined) onSaved(destination);
    },
  });
  const { value } = form;
  const allowed = may(DestinationService.method[stored ? "replaceDestination" : "createDestination"]);
  return (
    <form class={formLook.form} onSubmit={form.submit} aria-label={stored ? "Destination" : "New destination"}>
      <fieldset class={formLook.bare} disabled={!allowed}>
        {!stored && (
          <TextField
            form={form}
            path="name"
            label="Name"
            help="The name cannot be changed later."
            required
            value={value.name}
            set={(name) => form.change({ name })}
          />
        )}
        <KindFields form={form} />
        <NumberField
          form={form}
          path="maxPerMinute"
          label="Limit per minute"
          unit="notifications"
          whole
          help="Above that, one summary a minute replaces the others. Empty: no bound."
          value={value.maxPerMinute || undefined}
          set={(maxPerMinute) => form.change({ maxPerMinute: maxPerMinute ?? 0 })}
        />
        <AboutFields form={form} about={value} />
      </fieldset>
      {made.value ? (
        <ShownOnce
          label="Signing secret of the webhook"
          secret={made.value.secret}
          done={() => {
            const { destination } = made.value ?? {};
            made.value = undefined;
            if (destination) onSaved(destination);
          }}
        />
      ) : (
        <>
          {may(DestinationService.method.testDestination) && <TestOfDestination form={form} />}
          {allowed && <FormEnd form={form} schema={DestinationSchema} send={stored ? "Save" : "Create"} />}
        </>
      )}
    </form>
  );
}

/** The kind, and the fields of it. What was written for another kind comes back with it. */
function KindFields({ form }: { form: Form<typeof DestinationSchema> }) {
  const written = useRef(new Map<KindName, DestinationType>());
  const type = form.value.type ?? emptyType("email");
  const kind = type.type.case ?? "email";
  const { word, about, Fields } = kindOf(kind);
  const before = form.stored.type?.type;
  return (
    <>
      <ChoiceField
        form={form}
        path="kind"
        label="Kind"
        help={about}
        value={kind}
        choices={kindNames.map((name) => [name, kindOf(name).word])}
        set={(name) => {
          written.current.set(kind, type);
          form.change({
            type: written.current.get(name) ?? (before?.case === name ? form.stored.type : emptyType(name)),
          });
        }}
      />
      <fieldset>
        <legend>{word}</legend>
        {type.type.value && (
          <Fields
            form={form}
            path={`type.${kind}`}
            value={type.type.value}
            stored={before?.case === kind ? before.value : undefined}
            set={(fields) => {
              const next = clone(DestinationSchema, form.value).type ?? emptyType(kind);
              Object.assign(next.type.value ?? {}, fields);
              form.change({ type: next });
            }}
          />
        )}
      </fieldset>
    </>
  );
}

/**
 * Creates or changes it, and says so with the way back where no secret is lost. A secret that the service made is taken out of what
 * is returned, so that the form does not hold it.
 */
async function save(value: Destination, before: Destination | undefined, again: (destination: Destination) => void) {
  const { destination: now = value } =
    before === undefined
      ? await destinations.createDestination({ destination: value })
      : await destinations.replaceDestination({ destination: value });
  const { name } = now;
  const [destination, secret] = withoutMade(now);
  if (before === undefined) {
    const place = linkTo(["rules", "destinations", name]);
    say(`The destination "${name}" was created.`, async () => {
      await destinations.deleteDestination({ name });
      if (location.hash === place) goTo(linkTo(["rules", "destinations"]));
    });
  } else {
    const undo = async () => {
      const back = create(DestinationSchema, { ...before, etag: now.etag });
      const { destination: restored = back } = await destinations.replaceDestination({ destination: back });
      again(restored);
    };
    const can = before.etag === value.etag && sameSecrets(DestinationSchema, before, value);
    say(`The destination "${name}" was changed.`, can ? undo : undefined);
  }
  return { destination, secret };
}

function withoutMade(now: Destination): [Destination, string | undefined] {
  const safe = clone(DestinationSchema, now);
  const type = safe.type?.type;
  if (type?.case !== "webhook" || ["", storedSecret].includes(type.value.signingSecret)) return [safe, undefined];
  const { signingSecret } = type.value;
  type.value.signingSecret = storedSecret;
  return [safe, signingSecret];
}
