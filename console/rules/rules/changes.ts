import { create } from "@bufbuild/protobuf";
import { type Rule, RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { forgetDraft } from "../../form/kept-draft.ts";
import { maskOfAll } from "../../form/written.ts";

const rules = clientOf(RuleService);

const updateMask = maskOfAll(RuleSchema);

/** What distinguishes the unsent text of a stored rule from that of others. */
export const draftOf = (name: string) => `rule/of/${name}`;

const listPlace = linkTo(["rules", "rules"]);
const placeOf = (name: string) => linkTo(["rules", "rules", name]);

export async function createRule(sent: Rule): Promise<Rule | undefined> {
  const { rule } = await rules.createRule({ rule: sent });
  const name = rule?.name ?? sent.name;
  say(`The rule "${name}" was created.`, async () => {
    await rules.deleteRule({ name });
    if (location.hash === placeOf(name)) goTo(listPlace);
  });
  return rule;
}

/** @param takenBack called after the change was taken back */
export async function changeRule(sent: Rule, before: Rule, takenBack: () => void): Promise<Rule | undefined> {
  const { rule } = await rules.updateRule({ rule: sent, updateMask });
  const undo = async () => {
    const back = create(RuleSchema, { ...before, etag: rule?.etag ?? "" });
    await rules.updateRule({ rule: back, updateMask });
    takenBack();
  };
  // What was saved over another person's change has no former state here.
  say(`The rule "${sent.name}" was changed.`, before.etag === sent.etag ? undo : undefined);
  return rule;
}

/** Enables or disables it; nothing else of it is touched. */
export async function switchRule(name: string, enabled: boolean, changed: () => void): Promise<void> {
  const set = async (to: boolean) => {
    await rules.updateRule({ rule: { name, enabled: to }, updateMask: { paths: ["enabled"] } });
    changed();
  };
  await set(enabled);
  say(`The rule "${name}" is ${enabled ? "on" : "off"}.`, () => set(!enabled));
}

export async function deleteRule(name: string): Promise<void> {
  const { rule } = await rules.deleteRule({ name });
  forgetDraft(draftOf(name));
  goTo(listPlace);
  say(
    `The rule "${name}" was deleted.`,
    rule &&
      (async () => {
        await rules.createRule({ rule: { ...rule, etag: "" } });
        if (location.hash === listPlace) goTo(placeOf(name));
      }),
  );
}
