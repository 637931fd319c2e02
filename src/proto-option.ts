import { type DescExtension, getOption } from "@bufbuild/protobuf";

const read = new WeakMap<object, Map<DescExtension, unknown>>();

/** Reads an option of the proto files once: reading one decodes it, which takes 20 µs, as long as to check an event. */
export const optionOf: typeof getOption = (element, option) => {
  let known = read.get(element);
  if (known === undefined) {
    known = new Map();
    read.set(element, known);
  }
  if (!known.has(option)) known.set(option, getOption(element, option));
  return known.get(option) as ReturnType<typeof getOption<typeof option, typeof element>>;
};
