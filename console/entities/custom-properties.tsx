import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import type { Entity } from "#gen/belfry/entities/v1/entity_pb.ts";
import { CustomPropertyService } from "#gen/belfry/properties/v1/custom_property_service_pb.ts";
import { clientOf, type Failure, failureOf } from "../data/calls.ts";
import { say } from "../data/notice.ts";
import { may } from "../data/session.ts";
import { typedValue } from "../data/typed-value.ts";
import { AskFirst } from "../ui/ask-first.tsx";
import { valueText } from "../ui/facts.tsx";
import { Problem } from "../ui/problem.tsx";
import ui from "../ui/ui.module.css";

const properties = clientOf(CustomPropertyService);

const input = (id: string) => ({ selection: { case: "withIds" as const, value: { ids: [id] } } });

/** What people have added to an entity, and the form to add more. */
export function CustomProperties({ entity, changed }: { entity: Entity; changed(): void }) {
  const failure = useSignal<Failure | undefined>(undefined);
  const attempt = async (work: Promise<unknown>, done: string, undo: () => Promise<unknown>) => {
    try {
      await work;
      failure.value = undefined;
      say(done, async () => {
        await undo();
        changed();
      });
      changed();
      return true;
    } catch (error) {
      failure.value = failureOf(error);
      return false;
    }
  };
  const values: JsonObject = entity.customProperties ?? {};
  const keys = Object.keys(values).sort();
  const set = (name: string, value: JsonValue) =>
    properties.setCustomProperties({ input: input(entity.id), properties: { [name]: value } });
  const remove = (name: string) => properties.deleteCustomProperties({ input: input(entity.id), propertyKeys: [name] });
  /** Makes a property again what it is now. */
  const restore = (name: string) => {
    const before = Object.hasOwn(values, name) ? values[name] : undefined;
    return () => (before === undefined ? remove(name) : set(name, before));
  };
  return (
    <section class={ui.card} aria-labelledby="custom">
      <h2 id="custom">Custom properties</h2>
      {keys.length === 0 && <p class={ui.quiet}>None.</p>}
      <dl class={ui.facts}>
        {keys.map((key) => (
          <div key={key} class={ui.fact}>
            <dt>{key}</dt>
            <dd>
              {valueText(values[key])}
              {may(CustomPropertyService.method.deleteCustomProperties) && (
                <AskFirst
                  action="Delete"
                  label={`Delete the property ${key}`}
                  question={`Delete the property "${key}" of this entity?`}
                  act={() => attempt(remove(key), `The property "${key}" was deleted.`, restore(key))}
                />
              )}
            </dd>
          </div>
        ))}
      </dl>
      {may(CustomPropertyService.method.setCustomProperties) && (
        <SetProperty
          set={(name, value) => attempt(set(name, value), `The property "${name}" was set.`, restore(name))}
        />
      )}
      <Problem failure={failure.value} />
    </section>
  );
}

function SetProperty({ set }: { set(name: string, value: JsonValue): Promise<boolean> }) {
  const name = useSignal("");
  const value = useSignal("");
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!(await set(name.value, typedValue(value.value)))) return;
    name.value = "";
    value.value = "";
  };
  return (
    <form class={ui.inline} onSubmit={submit} aria-label="Set a property">
      <input
        class={ui.short}
        aria-label="Name"
        placeholder="name"
        required
        value={name.value}
        onInput={({ currentTarget }) => {
          name.value = currentTarget.value;
        }}
      />
      <input
        aria-label="Value"
        placeholder="value"
        value={value.value}
        onInput={({ currentTarget }) => {
          value.value = currentTarget.value;
        }}
      />
      <button type="submit">Set</button>
    </form>
  );
}
