import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import {
  DestinationTypeSchema,
  WebhookDestinationSchema,
  WebhookFormat,
} from "#gen/belfry/notifications/v1/destination_pb.ts";
import {
  type PreviewMessageRequest,
  PreviewMessageResponseSchema,
  type RuleService,
} from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { textArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { unknownNames } from "../../db/held-names.ts";
import { pageBytesMax } from "../../db/paging/page-contents.ts";
import { invalidField, invalidFields, notFound } from "../../errors.ts";
import { type Pace, paced } from "../../event-loop.ts";
import { principalOf } from "../../rpc/context.ts";
import { normalizedName } from "../../rpc/name-rules.ts";
import { defaultMessage } from "../kinds/default-texts.ts";
import { checkDestination, describedType, goTemplates } from "../kinds/kinds.ts";
import type { SendEnvironment } from "../kinds/send-environment.ts";
import type { StoredTrigger } from "../rules/stored-rules.ts";
import type { Notification } from "../subject/notification.ts";
import { templateVariables } from "../templates/alerts.ts";
import { plainText } from "../templates/markup.ts";
import { brokenTemplate, namedValues, newSteps, parseTemplate, render, type Variables } from "../templates/template.ts";
import {
  type PreviewedDestination,
  previewed,
  previewedDestination,
  previewsOf,
  type StoredDestination,
} from "./preview.ts";
import { previewedOccurrence } from "./preview-subject.ts";

const emptyNamesMax = 100;
const valueCharsMax = 200;
const exampleUrl = "https://example.com";
/** What a rule that is not stored yet repeats by. */
const repeatIntervalSec = 3600n;

/** Shows what messages would say of an occurrence. */
export function messagePreviews(
  db: Db,
  world: SendEnvironment,
): Pick<ServiceImpl<typeof RuleService>, "previewMessage"> {
  return {
    async previewMessage(request, context) {
      const principal = principalOf(context);
      const { tenantId } = principal;
      const broken = brokenTemplate(request.message);
      if (broken !== undefined) throw invalidField("message", broken, FieldRule.TEMPLATE);
      const pace = paced(() => context.signal.throwIfAborted(), tenantId);
      const { triggers, destinations } = await namedBy(db, tenantId, request);
      const unsaved = request.webhookBody === "" ? [] : [await webhookOf(request.webhookBody, tenantId)];
      const { occurrenceId } = request;
      const row = occurrenceId === "" ? undefined : await previewedOccurrence(db, tenantId, occurrenceId, triggers);
      if (row === undefined && occurrenceId !== "") throw notFound("occurrence", occurrenceId);
      const { message, ruleName: name, triggerNames, destinationNames, grouped: isGrouped } = request;
      const rule = { name, message, enabled: true, repeatIntervalSec, triggerNames, destinationNames };
      const found = await previewed({ rule, triggers, row, isGrouped }, principal, world, pace);
      const { notification, matches, steps } = found;
      return create(PreviewMessageResponseSchema, {
        ...(await said(notification, destinations, world.publicUrl, pace)),
        previews: await previewsOf([...destinations, ...unsaved], notification, world, pace, () =>
          invalidField(
            "destinationNames",
            `have previews of more than ${pageBytesMax} bytes together: name fewer destinations, or take a smaller event`,
            FieldRule.SIZE,
          ),
        ),
        matches,
        steps,
      });
    },
  };
}

/** A webhook with this body, which needs no address to be shown. @throws code 3 when it may not be stored */
async function webhookOf(body: string, tenantId: string): Promise<PreviewedDestination> {
  const value = create(WebhookDestinationSchema, { url: exampleUrl, format: WebhookFormat.TEMPLATE, body });
  const type = create(DestinationTypeSchema, { type: { case: "webhook", value } });
  // Tags are looked for in what can be parsed alone.
  const broken = (await checkDestination(type, tenantId))[0] ?? goTemplates(type)[0];
  if (broken !== undefined) throw invalidField("webhookBody", broken.rule, FieldRule.TEMPLATE);
  return { name: "", type };
}

/** The message as text, what of it is empty, and all that it may name. */
async function said(
  notification: Notification,
  destinations: readonly PreviewedDestination[],
  publicUrl: string,
  pace: Pace,
) {
  const variables = variablesFor(notification, destinations, publicUrl);
  const empty = new Set<string>();
  const note = (name: string) => void (empty.size < emptyNamesMax && empty.add(name));
  const steps = newSteps();
  const template = parseTemplate(notification.rule.message || defaultMessage, steps);
  const text = await render(template, variables, plainText, { steps, pace, empty: note });
  // An event has no metric; the names of one are listed for triggers that have.
  const all = variablesFor({ metric: { name: "", labels: {} }, ...notification }, destinations, publicUrl);
  const shown = namedValues(all).map(({ name, value }) => ({
    name,
    value: value.slice(0, valueCharsMax).toWellFormed(),
  }));
  return { text, emptyNames: [...empty], variables: shown };
}

/** With the properties of each kind among the destinations, of its first one. */
function variablesFor(
  notification: Notification,
  destinations: readonly PreviewedDestination[],
  publicUrl: string,
): Variables {
  const kinds = destinations.map(({ type }) =>
    templateVariables(notification, describedType(type), plainText, publicUrl),
  );
  const destination = Object.assign({}, ...kinds.reverse().map((each) => each.destination));
  return { ...templateVariables(notification, undefined, plainText, publicUrl), destination };
}

/** What a request names, in its order. @throws code 3 for each name that there is none of */
async function namedBy(db: Db, tenantId: string, request: PreviewMessageRequest) {
  const triggerNames = request.triggerNames.map(normalizedName);
  const destinationNames = request.destinationNames.map(normalizedName);
  const triggers = await db<StoredTrigger[]>`
    select name, type from triggers where tenant_id = ${tenantId} and name = any(${textArray(triggerNames)}::text[])`;
  const destinations = await db<StoredDestination[]>`
    select name, type from destinations
    where tenant_id = ${tenantId} and name = any(${textArray(destinationNames)}::text[])`;
  return {
    triggers: inOrder(triggerNames, triggers, "trigger"),
    destinations: inOrder(destinationNames, destinations, "destination").map(previewedDestination),
  };
}

function inOrder<T extends { name: string }>(names: readonly string[], found: readonly T[], kind: string): T[] {
  const byName = new Map(found.map((each) => [each.name, each]));
  const missing = unknownNames(kind, names, new Set(byName.keys()), `${kind}Names`);
  if (missing.length > 0) throw invalidFields(missing);
  return [...new Set(names)].flatMap((name) => byName.get(name) ?? []);
}
