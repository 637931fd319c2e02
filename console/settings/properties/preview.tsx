import { type JsonObject, toJsonString } from "@bufbuild/protobuf";
import { type Clause, ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { useSettled } from "../../data/settled.ts";
import { valueText } from "../../ui/facts.tsx";
import { Problem } from "../../ui/problem.tsx";
import ui from "../../ui/ui.module.css";
import settingsLook from "../settings.module.css";

const entities = clientOf(EntityService);
const shownMax = 20;

/** Properties to set, and the conditions of their entities. */
interface Setting {
  readonly clause: Clause | undefined;
  readonly properties: JsonObject;
}

function textOf(clause: Clause | undefined): string {
  try {
    return clause === undefined ? "" : toJsonString(ClauseSchema, clause);
  } catch {
    return "";
  }
}

/** Previews a setting while it is typed: the entities that match, each with its present and its future values. */
export function Preview({ clause, properties }: Setting) {
  const settled = useSettled(textOf(clause));
  const answer = useAnswer(async (signal) => {
    if (clause === undefined) return undefined;
    const pageInput = { limit: shownMax };
    return await entities.searchEntities({ searchInput: { query: { clause }, pageInput } }, { signal });
  }, settled);
  const { value, loading, failure, again } = answer.value;
  const names = Object.keys(properties);
  const found = value?.entities?.entities ?? [];
  const total = Number(value?.pageInfo?.totalCount ?? 0n);
  return (
    <section class={ui.card} aria-labelledby="preview" aria-busy={loading}>
      <h2 id="preview">What it would set now</h2>
      <Problem failure={failure?.fields.length ? undefined : failure} again={again} />
      {clause === undefined ? (
        <p class={ui.quiet}>Say which entities.</p>
      ) : (
        value && (
          <>
            <p role="status">
              {total.toLocaleString("en")} {total === 1 ? "entity matches" : "entities match"} now
              {total > shownMax && `; the first ${shownMax}:`}
            </p>
            <div class={settingsLook.scrollX}>
              <table class={settingsLook.plainTable}>
                <caption class={ui.unseen}>Entities that match</caption>
                <thead>
                  <tr>
                    <th scope="col">Entity</th>
                    {names.map((name) => (
                      <th key={name} scope="col">
                        {name}
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {found.map((entity) => (
                    <tr key={entity.id}>
                      <th scope="row">
                        <a href={linkTo(["entities", entity.id])}>{entity.displayName}</a>
                      </th>
                      {names.map((name) => (
                        <td key={name}>
                          <Change before={entity.customProperties?.[name]} after={properties[name]} />
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </>
        )
      )}
    </section>
  );
}

function Change({ before, after }: { before: unknown; after: unknown }) {
  if (JSON.stringify(before) === JSON.stringify(after))
    return <span class={ui.quiet}>{valueText(after)}, as it is</span>;
  return (
    <>
      {before === undefined ? <span class={ui.quiet}>none</span> : <del>{valueText(before)}</del>} → {valueText(after)}
    </>
  );
}
