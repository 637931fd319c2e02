/** What a person writes into the form of each kind, by the labels of its fields, and what is stored then. A text that is empty presses a button. */
export const written: Readonly<Record<string, { fields: [label: string, text: string][]; type: object }>> = {
  "E-mail": { fields: [["To", "ops@example.com"]], type: { email: { to: "ops@example.com" } } },
  "Event in Belfry": {
    fields: [
      ["Name", "{{{event.name}}} again"],
      ["Type", "follow-up"],
      ["Summary", "{{{event.summary}}}"],
      ["Severity", "Warning"],
    ],
    type: { event: { nameTemplate: "{{{event.name}}} again", severity: "SEVERITY_WARNING" } },
  },
  "Microsoft Teams (officeChat)": {
    fields: [
      ["Webhook address", "https://acme.webhook.office.com/webhookb2/s3cret"],
      ["Text", "**{{event.name}}**"],
      ["Add a fact", ""],
      ["Name of fact 1", "Where"],
      ["Value of fact 1", "{{entity.name}}"],
    ],
    type: {
      officeChat: { webhookUrl: "********", facts: [{ name: "Where", value: "{{entity.name}}" }] },
    },
  },
  "PagerDuty (incidentPaging)": {
    fields: [["Integration key", "R0utingKeyOf32Characters00000000"]],
    type: { incidentPaging: { integrationKey: "********", credentialId: "" } },
  },
  "ServiceNow (itsm)": {
    fields: [
      ["Address of the instance", "https://acme.service-now.com"],
      ["By", "OAuth with a refresh token"],
      ["Client's identifier", "belfry"],
      ["Client's secret", "cl1ent-s3cret"],
      ["Refresh token", "r3fresh-t0ken"],
      ["Address for access tokens", "https://acme.service-now.com/oauth_token.do"],
      ["Address at which people get a refresh token", "https://acme.service-now.com/oauth_auth.do"],
      ["State", "7"],
      ["Close code", "Solved"],
    ],
    type: { itsm: { oauth: { clientId: "belfry", refreshToken: "********" }, closeState: 7, closeCode: "Solved" } },
  },
  "Slack (teamChat)": {
    fields: [
      ["Channel", "ops"],
      ["Token", "xoxb-1234-s3cret"],
      ["Colour of the bar", "#d7263d"],
    ],
    type: { teamChat: { channel: "ops", token: "********", color: "#d7263d" } },
  },
  Webhook: {
    fields: [["Address", "https://hooks.example.com/{{event.name}}"]],
    type: { webhook: { url: "https://hooks.example.com/{{event.name}}" } },
  },
};
