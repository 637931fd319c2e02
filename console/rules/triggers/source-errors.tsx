import { useEffect } from "preact/hooks";
import type { TriggerSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Form } from "../../form/form.ts";
import ui from "../../ui/ui.module.css";

interface SourceErrorsProps {
  readonly form: Form<typeof TriggerSchema>;
  readonly path: string;
  readonly label: string;
}

/** What is wrong with a source as a whole; what is wrong within it is shown at its fields. */
export function SourceErrors({ form, path, label }: SourceErrorsProps) {
  useEffect(() => form.claim(path, label), [path, label]);
  const texts = form
    .errorsAt(path)
    .filter(({ field }) => field === path)
    .map(({ description }) => description);
  if (texts.length === 0) return null;
  return (
    <p class={ui.fieldError} role="alert">
      {texts.join("; ")}
    </p>
  );
}
