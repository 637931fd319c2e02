import { randomUUIDv7 } from "node:crypto";
import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import type { ConnectError, ServiceImpl } from "@connectrpc/connect";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { ExplanationStep } from "#gen/belfry/notifications/v1/explanation_pb.ts";
import { PreviewRuleResponseSchema, type RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import type { Principal } from "../../auth/principal.ts";
import type { Db } from "../../db/connect.ts";
import { pageBytesMax } from "../../db/paging/page-contents.ts";
import { invalidField, notFound } from "../../errors.ts";
import { type Pace, paced } from "../../event-loop.ts";
import { principalOf } from "../../rpc/context.ts";
import { withoutAddress } from "../kinds/hidden-address.ts";
import type { Composed } from "../kinds/kind.ts";
import { compose } from "../kinds/kinds.ts";
import { sampleSubject } from "../kinds/sample-notifications.ts";
import type { SendEnvironment } from "../kinds/send-environment.ts";
import { type MatchRow, triggerFields } from "../rules/rows.ts";
import { storedTriggerType } from "../rules/sources.ts";
import { readStoredRules, type StoredTrigger, withTriggers } from "../rules/stored-rules.ts";
import type { Notification } from "../subject/notification.ts";
import { sampleGroup } from "../templates/group-notification.ts";
import { ruleStep, triggerStep } from "./explanation-steps.ts";
import { previewRow, previewSubject } from "./preview-subject.ts";

/** Members of the group that a preview shows of a rule with groups. */
const sampleMembers = 3;

export interface StoredDestination {
  name: string;
  type: JsonValue;
}

/** A destination as previews see it: its secrets are hidden, which none shows. */
export const previewedDestination = ({ name, type }: StoredDestination) => ({
  name,
  type: withoutAddress(fromJson(DestinationTypeSchema, type)),
});
export type PreviewedDestination = ReturnType<typeof previewedDestination>;

async function destinationsOf(db: Db, tenantId: string, rule: string) {
  const rows = await db<StoredDestination[]>`
    select d.name, d.type
    from rule_destinations r join destinations d on d.tenant_id = r.tenant_id and d.name = r.destination_name
    where r.tenant_id = ${tenantId} and r.rule_name = ${rule} order by r.place`;
  return rows.map(previewedDestination);
}

/** @throws what `tooMuch` makes when they hold more than an answer may: then the rest of them is not rendered */
export async function previewsOf(
  destinations: readonly PreviewedDestination[],
  notification: Notification,
  world: SendEnvironment,
  pace: Pace,
  tooMuch: () => ConnectError,
) {
  let bytes = 0;
  const previews: (Composed & { destination: string })[] = [];
  for (const { name, type } of destinations) {
    const preview = { destination: name, ...(await compose(type, notification, world, pace)) };
    for (const text of Object.values(preview)) bytes += Buffer.byteLength(text);
    if (bytes > pageBytesMax) throw tooMuch();
    previews.push(preview);
  }
  return previews;
}

/** What is previewed: a rule, stored or not, and an occurrence; without one a sample is sent, and nothing said of the triggers. */
interface Previewed {
  readonly rule: Notification["rule"];
  readonly triggers: readonly StoredTrigger[];
  readonly row: MatchRow | undefined;
  readonly isGrouped: boolean;
}

/** Returns what would be sent, and a step a trigger, in their order: of the first one that matches, else of the first one. */
export async function previewed(
  { rule, triggers, row, isGrouped }: Previewed,
  { tenantId, tenantName }: Pick<Principal, "tenantId" | "tenantName">,
  { nowMs }: Pick<SendEnvironment, "nowMs">,
  pace: Pace,
) {
  const { events: values } = triggerFields(tenantId, tenantName);
  const steps: ExplanationStep[] = [];
  for (const trigger of row ? triggers : []) {
    await pace();
    steps.push(await triggerStep(trigger, { row, match: undefined }, values, pace));
  }
  const first = steps.findIndex(({ result }) => result === "passed");
  const named = triggers[Math.max(first, 0)];
  const one: Notification = {
    ...(row ? previewSubject(row) : sampleSubject(nowMs())),
    rule,
    trigger: { name: named?.name ?? "", type: storedTriggerType(named?.type ?? {}) },
    id: randomUUIDv7(),
    timeMs: nowMs(),
    tenant: { id: tenantId, name: tenantName },
    chain: [],
  };
  return { steps, matches: first >= 0, notification: isGrouped ? sampleGroup(one, sampleMembers) : one };
}

/** Shows whether rules would match, and what they would send. */
export function rulePreviews(db: Db, world: SendEnvironment): Pick<ServiceImpl<typeof RuleService>, "previewRule"> {
  return {
    async previewRule(request, context) {
      const principal = principalOf(context);
      const { tenantId } = principal;
      const pace = paced(() => context.signal.throwIfAborted(), tenantId, { holdsNothing: true });
      const [rule] = await withTriggers(
        db,
        tenantId,
        await readStoredRules(db, tenantId, db`r.name = ${request.name}`),
      );
      if (rule === undefined) throw notFound("rule", request.name);
      const { triggers } = rule;
      const row = await previewRow(db, tenantId, request.subject, triggers);
      const isGrouped = rule.grouping !== null;
      const { steps, ...found } = await previewed({ rule, triggers, row, isGrouped }, principal, world, pace);
      const destinations = await destinationsOf(db, tenantId, request.name);
      return create(PreviewRuleResponseSchema, {
        matches: found.matches,
        steps: [ruleStep(rule), ...steps],
        previews: await previewsOf(destinations, found.notification, world, pace, () =>
          invalidField(
            "name",
            `names a rule whose previews hold more than ${pageBytesMax} bytes together: take a smaller event, or fewer destinations`,
            FieldRule.SIZE,
          ),
        ),
      });
    },
  };
}
