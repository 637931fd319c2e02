/** The forms of messages that many clients are sent, made once each and kept as long as the message. */
const forms = new WeakMap<object, Map<string, unknown>>();

/** Marks a message that many clients are sent; it must not change any more. */
export function shareForms<T extends object>(message: T): T {
  forms.set(message, new Map());
  return message;
}

/** A form of a message, its JSON text for example; of a shared one it is made once. */
export function formOf<T>(message: unknown, name: string, make: () => T): T {
  const made = forms.get(message as object);
  if (made === undefined) return make();
  let form = made.get(name) as T | undefined;
  if (form === undefined) {
    form = make();
    made.set(name, form);
  }
  return form;
}

/** Whether many clients are sent a message. */
export function isShared(message: unknown): boolean {
  return forms.has(message as object);
}
