import {
  clone,
  create,
  type DescMessage,
  equals,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Signal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { type Failure, failureOf } from "../data/calls.ts";
import { forgetDraft, keepDraft, readDraft } from "./kept-draft.ts";
import { sameWritten } from "./written.ts";

/** A form over one message of the API: what a person has written of it, and what the server said to that. */
export interface Form<S extends DescMessage> {
  /** What was read from the server, or what a new one begins with. */
  readonly stored: MessageShape<S>;
  /** What is in the form. */
  readonly value: MessageShape<S>;
  /** Whether a person has changed it: what the service adds by itself does not count. */
  readonly changed: boolean;
  readonly sending: boolean;
  readonly failure: Failure | undefined;
  /** What the server has now, when it was changed by another person since `stored` was read. */
  readonly conflict: MessageShape<S> | undefined;
  /** Sets top-level fields. What is typed survives a reload; secrets do not. */
  change(fields: Partial<MessageShape<S>>): void;
  /** Sends it. Also the handler of `onSubmit`. */
  submit(event?: Event): Promise<void>;
  /** Forgets what was typed: back to what was last seen of the server. */
  discard(): void;
  /** Sends it over what the server has now. */
  overwrite(): Promise<void>;
  /** Shows why another call with what is in the form was refused; without an error, that nothing is wrong with it. */
  refused(error?: unknown): void;
  /** What is wrong with the field at this path below the message, as in `type.webhook.url`, or with one within it. */
  errorsAt(path: string): readonly { readonly field: string; readonly description: string }[];
  /** Registers a field that shows its own errors. Returns the end of that. */
  claim(path: string, label: string): () => void;
  /** Names the field at this path as the form labels it; undefined: no field shows it. */
  labelOf(path: string): string | undefined;
  /** The labels of the fields that show an error, each once. */
  readonly wrongLabels: readonly string[];
  /** What is wrong where no field of the form stands. */
  readonly elsewhere: readonly string[];
}

interface FormOptions<S extends DescMessage> {
  /** What distinguishes this form from others, for what was typed and not sent; as in `trigger/new`. */
  readonly key: string;
  readonly stored: MessageShape<S>;
  /** The field of the request that holds the message: errors name it before their paths. */
  readonly prefix: string;
  /** Creates or changes it. Resolves to what is stored then. */
  send(value: MessageShape<S>): Promise<MessageShape<S> | undefined>;
  done?: (stored: MessageShape<S>) => void;
}

interface State<S extends DescMessage> {
  readonly stored: MessageShape<S>;
  readonly value: MessageShape<S>;
  readonly sending: boolean;
  readonly failure?: Failure;
  readonly conflict?: MessageShape<S>;
}

/** A form over a message. It opens with what was typed before a reload, if there is something. */
export function useForm<S extends DescMessage>(schema: S, options: FormOptions<S>): Form<S> {
  const { key, prefix, send, done } = options;
  const state: Signal<State<S>> = useSignal<State<S>>({
    stored: options.stored,
    value: draftOver(schema, key, options.stored),
    sending: false,
  });
  const claimed = useSignal<readonly Claim[]>([]);
  const read = useRef(options.stored);
  const latest = useRef(options.stored);
  if (read.current !== options.stored) {
    read.current = options.stored;
    const { stored, value } = state.peek();
    // Compared with what was saved last, not with the reading before: a change may be taken back before it was read.
    if (!equals(schema, stored, options.stored)) {
      latest.current = options.stored;
      if (sameWritten(schema, stored, value))
        state.value = { stored: options.stored, value: options.stored, sending: false };
    }
  }
  const put = (part: Partial<State<S>>) => {
    state.value = { ...state.peek(), ...part };
  };
  const attempt = async (value: MessageShape<S>) => {
    if (state.peek().sending) return;
    const { stored } = state.peek();
    state.value = { stored, value, sending: true };
    try {
      const now = (await send(value)) ?? value;
      forgetDraft(key);
      latest.current = now;
      const { value: typed } = state.peek();
      const next = typed === value ? now : follows(schema, typed, now);
      if (next !== now) keepDraft(schema, key, next);
      state.value = { stored: now, value: next, sending: false };
      done?.(now);
    } catch (error) {
      const conflict = conflictOf(schema, error);
      if (conflict) latest.current = conflict;
      const { value: typed } = state.peek();
      state.value = { stored, value: typed, sending: false, failure: failureOf(error), ...(conflict && { conflict }) };
    }
  };
  const { stored, value, sending, failure, conflict } = state.value;
  const errors = (failure?.fields ?? []).map(({ field, description }) => ({
    field: field.startsWith(`${prefix}.`) ? field.slice(prefix.length + 1) : field,
    description,
  }));
  const labelOf = (path: string) =>
    claimed.value
      .filter((claim) => isWithin(path, claim.path))
      .reduce<Claim | undefined>(
        (nearest, claim) => (claim.path.length > (nearest?.path.length ?? -1) ? claim : nearest),
        undefined,
      )?.label;
  return {
    stored,
    value,
    changed: !sameWritten(schema, stored, value),
    sending,
    failure,
    conflict,
    change(fields) {
      const next = Object.assign(clone(schema, state.peek().value), fields);
      put({ value: next });
      keepDraft(schema, key, next);
    },
    async submit(event) {
      event?.preventDefault();
      await attempt(state.peek().value);
    },
    discard() {
      forgetDraft(key);
      const now = latest.current;
      state.value = { stored: now, value: now, sending: false };
    },
    async overwrite() {
      const now = state.peek().conflict;
      if (now === undefined) return;
      const etag = { etag: (now as Message & { etag?: string }).etag };
      await attempt(Object.assign(clone(schema, state.peek().value), etag));
    },
    refused(error) {
      const { failure: _failure, conflict: _conflict, ...now } = state.peek();
      state.value = error === undefined ? now : { ...now, failure: failureOf(error) };
    },
    errorsAt: (path) => errors.filter(({ field }) => isWithin(field, path)),
    claim(path, label) {
      const claim = { path, label };
      claimed.value = [...claimed.peek(), claim];
      return () => {
        claimed.value = claimed.peek().filter((each) => each !== claim);
      };
    },
    labelOf,
    wrongLabels: [...new Set(errors.flatMap(({ field }) => labelOf(field) ?? []))],
    elsewhere: errors
      .filter(({ field }) => labelOf(field) === undefined)
      .map(({ field, description }) => (field === "" ? description : `${field} ${description}`)),
  };
}

/** A field that shows the errors at its path. */
interface Claim {
  readonly path: string;
  readonly label: string;
}

const isWithin = (field: string, path: string) =>
  field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`);

/** What was typed before a reload; a draft that says the same as what is stored is none. */
function draftOver<S extends DescMessage>(schema: S, key: string, stored: MessageShape<S>): MessageShape<S> {
  const draft = readDraft(schema, key, stored);
  return draft === undefined || sameWritten(schema, draft, stored) ? stored : draft;
}

/** What was typed while an earlier state was sent, as a change of what is stored since. */
function follows<S extends DescMessage>(schema: S, typed: MessageShape<S>, now: MessageShape<S>): MessageShape<S> {
  const next = clone(schema, typed);
  return "etag" in now ? Object.assign(next, { etag: now.etag }) : next;
}

/** What the server has now, from an error of code 10. */
function conflictOf<S extends DescMessage>(schema: S, error: unknown): MessageShape<S> | undefined {
  const failure = ConnectError.from(error);
  return failure.code === Code.Aborted ? failure.findDetails(schema)[0] : undefined;
}

/** A message that a form of something new begins with. */
export const blank = <S extends DescMessage>(schema: S, init?: MessageInitShape<S>) => create(schema, init);
