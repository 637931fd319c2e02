import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { SilenceSchema } from "#gen/belfry/notifications/v1/silence_pb.ts";
import { PreviewSilenceResponseSchema, type SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import type { Db } from "../../../db/connect.ts";
import { paced } from "../../../event-loop.ts";
import type { LabelView } from "../../../events/labels.ts";
import { occurrenceIdText } from "../../../events/occurrence-id.ts";
import { countOpen, openAlerts } from "../../../events/open-alerts.ts";
import { principalOf } from "../../../rpc/context.ts";
import { normalizedName } from "../../../rpc/name-rules.ts";
import type { InForce } from "../../deciding/engine.ts";
import { matchingRules } from "../../rules/match-store.ts";
import { readSilenceMatchers } from "../../silences/silences.ts";
import { covers, hasScope } from "../../silences/silences-in-force.ts";
import { keyText, occurrenceSubject } from "../../subject/subject.ts";

const shownMax = 100;
const broadCount = 500;
/** With this many, half of all that is open is broad, too. */
const broadShareCount = 20;

/** Shows what silences would match, and which rules they would hold as those are in force now. */
export function silencePreviews(db: Db, inForce: InForce): Pick<ServiceImpl<typeof SilenceService>, "previewSilence"> {
  return {
    async previewSilence({ silence = create(SilenceSchema) }, context) {
      const { tenantId } = principalOf(context);
      const matchers = readSilenceMatchers(silence.matchers, "silence.matchers");
      const scope = {
        ruleNames: new Set(silence.ruleNames.map(normalizedName)),
        destinationNames: new Set(silence.destinationNames.map(normalizedName)),
      };
      const { byId } = await inForce(tenantId);
      const held = (id: string) => {
        const { name = "", destinationNames = [] } = byId.get(id) ?? {};
        return destinationNames.some((destination) => covers(scope, name, destination)) ? [name] : [];
      };
      const pace = paced(() => context.signal.throwIfAborted(), tenantId, { holdsNothing: true });
      const occurrences: { occurrenceId: string; name: string; summary: string }[] = [];
      const ruleNames = new Set<string>();
      const labels = new Map<string, Set<string>>();
      let count = 0;
      for await (const found of openAlerts(db, tenantId, { matchers, path: "silence.matchers", pace })) {
        const keys = found.map(({ event, occurrence }) => occurrenceSubject(event, occurrence.number).key);
        const byKey = await matchingRules(db, tenantId, keys);
        for (const [i, { event, occurrence, labels: own }] of found.entries()) {
          const rules = (byKey.get(keyText(keys[i] as Buffer)) ?? []).flatMap(held);
          if (hasScope(scope) && rules.length === 0) continue;
          count += 1;
          collect(labels, own);
          for (const name of rules) ruleNames.add(name);
          const occurrenceId = occurrenceIdText(event.id, occurrence.number);
          if (occurrences.length < shownMax)
            occurrences.push({ occurrenceId, name: event.name, summary: occurrence.summary });
        }
      }
      return create(PreviewSilenceResponseSchema, {
        count: BigInt(count),
        ruleNames: [...ruleNames].sort(),
        occurrences,
        labels: [...labels].sort(byName).map(([name, values]) => ({ name, values: [...values].sort() })),
        broad:
          count >= broadCount || (count >= broadShareCount && BigInt(count) * 2n >= (await countOpen(db, tenantId))),
      });
    },
  };
}

const labelsMax = 100;
const valuesMax = 20;
const charsMax = 255;

/** Adds the labels of an occurrence to those that are shown. */
function collect(labels: Map<string, Set<string>>, own: LabelView): void {
  for (const [name, value] of Object.entries(own)) {
    if (name.length > charsMax || value.length > charsMax) continue;
    const values = labels.get(name);
    if (values === undefined) {
      if (labels.size < labelsMax) labels.set(name, new Set([value]));
    } else if (values.size < valuesMax) values.add(value);
  }
}

const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1);
