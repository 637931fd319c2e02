import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { compose } from "../../src/notifications/kinds/kinds.ts";
import { samples } from "./disk-alerts.ts";
import { destinations, type Site, site } from "./kinds.ts";

let place: Site;
beforeAll(async () => {
  place = await site();
});
afterAll(async () => {
  await place[Symbol.asyncDispose]();
});

const page = fileURLToPath(new URL("../../docs/default-messages.md", import.meta.url));
const kinds = ["email", "teamChat", "officeChat", "incidentPaging", "itsm"] as const;
const spoken = {
  email: "E-mail",
  teamChat: "Slack",
  officeChat: "Teams",
  incidentPaging: "PagerDuty",
  itsm: "ServiceNow",
};

const introduction = `# Default messages

What each kind is sent by a rule without a \`message\`, to a destination without texts of its own, as \`:test\` and previews show it. The
alerts are made up. [Templates](templates.md) say otherwise.

![An e-mail: a red banner with the severity and what happens where, the event's text, a table of facts, and links](images/email.png)
`;

test("the page of default messages shows what is sent", async () => {
  const parts = [introduction];
  for (const kind of kinds) {
    parts.push(`## ${spoken[kind]}\n`);
    const { value, ...type } = destinations[kind](place.receiver.url) as { value: object; case: typeof kind };
    const plain = { ...type, value: { ...value, text: "", shortDescription: "" } } as never;
    for (const [title, notification] of samples) {
      const { subject, body } = await compose(
        create(DestinationTypeSchema, { type: plain }),
        notification,
        place.world,
      );
      const text = [subject, body]
        .filter((part) => part !== "")
        .join("\n\n")
        .trim();
      parts.push(`### ${spoken[kind]}: ${title.charAt(0).toLowerCase()}${title.slice(1)}\n\n\`\`\`\n${text}\n\`\`\`\n`);
    }
  }
  await expect(`${parts.join("\n")}`).toMatchFileSnapshot(page);
});
