import { expect, test } from "vitest";
import { silencePlace } from "./silences/place.ts";

const go = "{{ range .Alerts }}{{ .Labels.host }}{{ end }}";
const said = "has a tag of Go's templates ({{ range .Alerts }}) at line 1, column 1";
const webhook = (body: string) => ({
  webhook: { url: "http://127.0.0.1:9/", format: "WEBHOOK_FORMAT_TEMPLATE", body: `{"a":"${body}"}` },
});

test("Go's templates are refused in messages, bodies, subjects and previews, by the field's name", async () => {
  const { call, made } = await silencePlace();
  await made("destinations", { name: "d", type: webhook("x") });
  const email = { email: { to: "a@example.com", subject: go } };
  for (const [path, field, body] of [
    ["rules", "message", { name: "r", message: go }],
    ["destinations", "type.webhook.body", { name: "e", type: webhook(go) }],
    ["destinations", "type.email.subject", { name: "e", type: email }],
    ["rules:preview", "message", { message: go }],
    ["rules:preview", "webhookBody", { webhookBody: `{"a":"${go}"}` }],
  ] as const) {
    const answer = await call("POST", `/v1/notification/${path}`, body);
    expect([path, answer.status, JSON.stringify(answer.body)]).toEqual([
      path,
      400,
      expect.stringContaining(`"field":"${field}"`),
    ]);
    expect(JSON.stringify(answer.body)).toContain("has a tag of Go's templates");
  }
  const changed = await call("PUT", "/v1/notification/destinations/d", { name: "d", type: webhook(go) });
  expect(JSON.stringify(changed.body)).toContain('"field":"type.webhook.body"');
});

test("what was stored before is sent back unchanged, and refused once it is changed", async () => {
  const { call, made, rule, server, tenant } = await silencePlace();
  await rule("r");
  await made("destinations", { name: "e", type: webhook("x") });
  const { sql } = server.database;
  await sql`update rules set message = ${go} where tenant_id = ${tenant.id} and name = 'r'`;
  await sql`
    update destinations set type = jsonb_set(type, '{webhook,body}', to_jsonb(${`{"a":"${go}"}`}::text))
    where tenant_id = ${tenant.id} and name = 'e'`;
  const status = async (path: string, body: object) => (await call("PUT", `/v1/notification/${path}`, body)).status;
  expect(await status("rules/r", { message: go, description: "as it is" })).toBe(200);
  expect(await status("destinations/e", { name: "e", type: webhook(go), description: "as it is" })).toBe(200);
  const answer = await call("PUT", "/v1/notification/rules/r", { message: `${go}!` });
  expect([answer.status, JSON.stringify(answer.body)]).toEqual([400, expect.stringContaining(said)]);
  expect(await status("destinations/e", { name: "e", type: webhook(`${go}!`) })).toBe(400);
});
