import { create } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import metricsLook from "./metrics.module.css";

const entities = clientOf(EntityService);
const offeredMax = 20;

/** Finds an entity by words of its name: arrow keys move in what is found, Enter chooses. */
export function EntityChoice({ name, choose }: { name: string; choose(id: string): void }) {
  const id = useId();
  const text = useSignal<string | undefined>(undefined);
  const active = useSignal(0);
  const answer = useAnswer(async (signal) => {
    const words = text.value;
    if (words === undefined) return [];
    const value = { kind: { case: "stringValue" as const, value: words } };
    const clause =
      words.trim() === ""
        ? create(ClauseSchema, { filter: { field: "id", operation: Operation.OP_EXISTS } })
        : create(ClauseSchema, { filter: { field: "name", operation: Operation.OP_TEXT, value } });
    const searchInput = { query: { clause }, pageInput: { limit: offeredMax } };
    return (await entities.searchEntities({ searchInput }, { signal })).entities?.entities ?? [];
  });
  const found = text.value === undefined ? [] : (answer.value.value ?? []);
  const take = (at: number) => {
    const entity = found[at];
    if (entity === undefined) return;
    text.value = undefined;
    choose(entity.id);
  };
  const press = (event: KeyboardEvent) => {
    const keys: Record<string, () => void> = {
      ArrowDown: () => {
        active.value = Math.min(found.length - 1, active.value + 1);
      },
      ArrowUp: () => {
        active.value = Math.max(0, active.value - 1);
      },
      Enter: () => take(active.value),
      Escape: () => {
        text.value = undefined;
      },
    };
    const act = keys[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  };
  const open = found.length > 0;
  return (
    <div class={metricsLook.combo}>
      <input
        role="combobox"
        aria-label="Entity"
        aria-expanded={open}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={open ? `${id}-${active.value}` : undefined}
        placeholder="Choose an entity"
        autocomplete="off"
        spellcheck={false}
        value={text.value ?? name}
        onFocus={({ currentTarget }) => currentTarget.select()}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
          active.value = 0;
        }}
        onKeyDown={press}
        onBlur={() => {
          text.value = undefined;
        }}
      />
      <div id={id} role="listbox" aria-label="Entities found" hidden={!open}>
        {found.map((entity, at) => (
          // biome-ignore lint/a11y/useFocusableInteractive: as above
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input has the keys
          <div
            key={entity.id}
            id={`${id}-${at}`}
            role="option"
            aria-selected={at === active.value}
            // A press would take the focus from the input, which closes the list.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(at)}
          >
            {entity.displayName}
          </div>
        ))}
      </div>
    </div>
  );
}
