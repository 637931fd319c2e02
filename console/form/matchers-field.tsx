import type { DescMessage } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { TextField } from "./fields.tsx";
import type { Form } from "./form.ts";
import { MatcherCompletion } from "./matcher-completion.tsx";

/** Reads the lines of a field: a matcher each. */
export const matchersIn = (text: string): string[] => text.split("\n").filter((line) => line.trim() !== "");

interface MatchersProps<S extends DescMessage> {
  readonly form: Form<S>;
  readonly path: string;
  readonly label: string;
  readonly value: readonly string[];
  set(matchers: string[]): void;
}

/** Matchers of labels, a line each; the server says where one is wrong. */
export function MatchersField<S extends DescMessage>({ form, path, label, value, set }: MatchersProps<S>) {
  const typed = useSignal(value.join("\n"));
  // What is typed stays as it is, blank lines included, unless the value is another one by now.
  const text = matchersIn(typed.value).join("\n") === value.join("\n") ? typed.value : value.join("\n");
  const change = (changed: string) => {
    typed.value = changed;
    set(matchersIn(changed));
  };
  return (
    <MatcherCompletion value={text} set={change}>
      <TextField
        form={form}
        path={path}
        label={label}
        help={
          'A matcher each line, all of which must hold, such as severity="critical" or instance=~web-.+ Case counts.'
        }
        rows={3}
        value={text}
        set={change}
      />
    </MatcherCompletion>
  );
}
