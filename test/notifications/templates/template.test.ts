import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import Mustache from "mustache";
import { describe, expect, test } from "vitest";
import { TeamChatDestinationSchema, WebhookDestinationSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Notification } from "../../../src/notifications/subject/notification.ts";
import {
  address,
  chat,
  escapeHtml,
  html,
  jsonMarkup,
  type Markup,
  markdown,
  plainText,
} from "../../../src/notifications/templates/markup.ts";
import {
  brokenTemplate,
  checkedTemplate,
  type Escaping,
  newSteps,
  parseTemplate,
  render,
  renderedCharsMax,
  renderStepsMax,
  type Variables,
} from "../../../src/notifications/templates/template.ts";
import { variablesOf } from "../../../src/notifications/templates/variables.ts";
import { cases } from "../../support/cases.ts";
import { turnMsMax } from "../../support/loop-turns.ts";
import { eventId, metricNotification, notificationOf } from "../notifications.ts";

const publicUrl = "https://belfry.example.com";
const teamChat = create(TeamChatDestinationSchema, { channel: "ops", token: "xoxb-secret", color: "#123456" });

function rendered(template: string, notification: Notification = notificationOf(), markup: Markup = plainText) {
  const destination = { name: "teamChat", desc: TeamChatDestinationSchema, message: teamChat };
  return made(template, variablesOf(notification, destination, markup, publicUrl), markup);
}

/** What a template makes, in one piece. */
function made(template: string, variables: Variables, escaping: Escaping, charsMax?: number): Promise<string> {
  const steps = newSteps();
  return render(parseTemplate(template, steps), variables, escaping, { steps, pace: () => undefined, charsMax });
}

/** The processor time since a moment, ms. */
function spentMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(since);
  return (user + system) / 1000;
}

describe("every variable", () => {
  const url = `${publicUrl}/console/#/occurrences/${encodeURIComponent(`${eventId}:2`)}`;
  test.each([
    ["clear", "false"],
    ["event.start_time", "2026-11-22T09:30:00.000Z"],
    ["event.fields.mount", "/var"],
    ["event.labels.alertname", "disk-full"],
    ["event.labels.severity", "error"],
    ["event.labels.site", "Köln"],
    ["event.labels.free", "1.2"],
    ["event.annotations.summary", ""],
    ["event.generator_url", ""],
    ["id", "019abcde-0000-7000-8000-000000000001"],
    ["headline", "Disk /var is 97 % full"],
    ["url", url],
    ["link", url],
    ["tenant", "acme"],
    ["tenant_url", publicUrl],
    ["timestamp", "2026-11-22T10:00:00.000Z"],
    ["timestamp_ms", "1795341600000"],
    ["event.id", eventId],
    ["event.name", "disk-full"],
    ["event.type", "storage"],
    ["event.headline", "Disk /var is 97 % full"],
    ["event.summary", "Disk /var is 97 % full"],
    ["event.body", "Only 1.2 GB are free."],
    ["event.severity", "ERROR"],
    ["event.status", "OPEN"],
    ["event.acknowledged", "false"],
    ["event.timestamp", "2026-11-22T09:59:30.000Z"],
    ["event.count", "3"],
    ["entity.id", "ZW50aXR5LWlkLW9mLTI4LWNoYXI="],
    ["entity.name", "web-1"],
    ["entity.dimensions.host", "web-1"],
    ["entity.dimensions.site", "Köln"],
    ["entity.dimensions", ""],
    ["entity.url", `${publicUrl}/console/#/entities/ZW50aXR5LWlkLW9mLTI4LWNoYXI%3D`],
    ["metric.name", ""],
    ["trigger.name", "disks"],
    ["trigger.threshold", ""],
    ["trigger.threshold_type", ""],
    ["rule.name", "page-storage"],
    ["destination.teamChat.channel", "ops"],
    ["destination.teamChat.color", "#123456"],
    ["destination.teamChat.token", ""],
    ["destination", ""],
    ["nothing", ""],
    ["event.nothing.at.all", ""],
    ["constructor", ""],
    ["event.constructor.name", ""],
    ["event.name.length", ""],
    ["__proto__.toString", ""],
    ["toString", ""],
  ])("of an event: %s", (name, value) => expect(rendered(`{{{${name}}}}`)).resolves.toBe(value));

  test.each([
    ["headline", "cpu.busy is 97.5 on web-1"],
    ["url", ""],
    ["link", ""],
    ["event.name", ""],
    ["metric.name", "cpu.busy"],
    ["metric.value", "97.5"],
    ["metric.timestamp", "2026-11-22T09:59:00.000Z"],
    ["trigger.threshold", "90"],
    ["trigger.threshold_type", "max"],
  ])("of a metric: %s", (name, value) => expect(rendered(`{{{${name}}}}`, metricNotification())).resolves.toBe(value));

  test("of data that stay away: the metric has no value", async () => {
    const notification = metricNotification({ metric: { name: "cpu.busy" } });
    expect(await rendered("{{{headline}}}|{{metric.value}}|{{metric.timestamp}}", notification)).toBe(
      "no data of cpu.busy from web-1||",
    );
  });

  test("values of headers and secrets of a destination are none", async () => {
    const message = create(WebhookDestinationSchema, {
      url: "https://hook.example.com/",
      signingSecret: "whsec_c2VjcmV0",
      headers: { authorization: "Bearer secret" },
    });
    const destination = { name: "webhook", desc: WebhookDestinationSchema, message };
    const variables = variablesOf(notificationOf(), destination, plainText, publicUrl);
    expect(JSON.stringify(variables)).not.toMatch(/c2VjcmV0|Bearer secret/);
    expect(await made("{{{destination.webhook.url}}}", variables, plainText)).toBe("https://hook.example.com/");
  });
});

describe("values come into a text as its markup wants", () => {
  const nasty = notificationOf({ event: { summary: `<b> & "it's" <!channel>`, name: "a/b c?d=é" } });
  const url = "https://belfry.example.com/console/#/occurrences/";
  test.each([
    ["two braces escape for HTML", html, "{{event.summary}}", "&lt;b&gt; &amp; &quot;it&#39;s&quot; &lt;!channel&gt;"],
    ["three braces do not", html, "{{{event.summary}}}", `<b> & "it's" <!channel>`],
    ["an ampersand does not", html, "{{&event.summary}}", `<b> & "it's" <!channel>`],
    ["plain text escapes nothing", plainText, "{{event.summary}}", `<b> & "it's" <!channel>`],
    ["team chat always escapes its own signs", chat, "{{{event.summary}}}", `&lt;b&gt; &amp; "it's" &lt;!channel&gt;`],
    ["team chat with two braces", chat, "{{event.summary}}", `&lt;b&gt; &amp; "it's" &lt;!channel&gt;`],
    ["team chat leaves the template", chat, "<!here> *{{event.name}}*", "<!here> *a/b c?d=é*"],
    ["an address takes a value as one part", address(), "https://x/{{event.name}}", "https://x/a%2Fb%20c%3Fd%3D%C3%A9"],
    [
      "three braces stay in their segment of a path",
      address(),
      "https://x/{{{event.name}}}",
      "https://x/a%2Fb%20c%3Fd=é",
    ],
    ["a query takes three braces as they are", address(), "https://x/y?z={{{event.name}}}", "https://x/y?z=a/b c?d=é"],
    ["so does what stands before the path", address(), "{{{event.name}}}", "a/b c?d=é"],
  ])("%s", (_name, markup, template, text) => expect(rendered(template, nasty, markup)).resolves.toBe(text));

  test.each([
    ["plain text", plainText],
    ["HTML", html],
    ["Markdown", markdown],
    ["team chat", chat],
  ])("characters that change the direction of reading are shown in %s", async (_name, markup) => {
    const turned = notificationOf({ event: { summary: "\u202Etxt.exe\u202C \u2066a\u2069" } });
    const shown = await rendered("{{event.summary}} {{{event.summary}}} {{{headline}}} {{link}}", turned, markup);
    expect(shown).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    expect(shown).toMatch(/^\\?\[U\+202E\\?\]txt\.exe/);
  });

  test("a link is written in the markup, with two braces and with three", async () => {
    const shown = escapeHtml(`<b> & "it's" <!channel>`);
    expect(await rendered("{{link}}", nasty, html)).toMatch(new RegExp(`^<a href="${url}[^"<]*">`));
    expect(await rendered("{{link}}", nasty, html)).toContain(`>${shown}</a>`);
    expect(await rendered("{{{link}}}", nasty, chat)).toMatch(
      new RegExp(`^<${url}[^|]*\\|&lt;b&gt;.*&lt;!channel&gt;>$`),
    );
    expect(await rendered("{{link}}", notificationOf({ event: { summary: "a [b] c" } }), markdown)).toMatch(
      /^\[a \\\[b\\\] c\]\(https:[^)]*\)$/,
    );
  });
});

describe("sections", () => {
  test.each([
    ["{{#clear}}over{{/clear}}{{^clear}}open{{/clear}}", "open"],
    ["{{#event}}{{name}} {{rule.name}}{{/event}}", "disk-full page-storage"],
    ["{{#metric}}metric{{/metric}}{{^metric}}no metric{{/metric}}", "no metric"],
    ["{{#event.acknowledged}}taken{{/event.acknowledged}}", ""],
    ["{{#entity}}{{#dimensions}}{{host}}{{/dimensions}}{{/entity}}", "web-1"],
    ["{{! a comment }}x", "x"],
    ["{{=<% %>=}}<% event.name %> {{event.name}}", "disk-full {{event.name}}"],
    ["", ""],
    ["no tags", "no tags"],
  ])("%s", (template, text) => expect(rendered(template)).resolves.toBe(text));
});

describe("what is no template is refused with its place", () => {
  test.each([
    ["{{event.name", "is no Mustache template: unclosed tag at line 1, column 13"],
    ["a\n{{#event}}b", 'is no Mustache template: unclosed section "event" at line 2, column 12'],
    ["a\n\n  {{/event}}", 'is no Mustache template: unopened section "event" at line 3, column 3'],
    ["{{#a}}{{#b}}{{/a}}{{/b}}", 'is no Mustache template: unclosed section "b" at line 1, column 13'],
    ["{{= =}}", /^is no Mustache template: /],
    ["x {{> header }}", "has a partial ({{> header}}) at line 1, column 3: there are none"],
    ["{{#a}}{{> b }}{{/a}}", /has a partial .* at line 1, column 7/],
    ["{{#a}}".repeat(40) + "{{/a}}".repeat(40), /has sections more than 32 deep at line 1, column 193/],
    [`x {{${"a".repeat(300)}}}`, "has a tag of more than 300 characters at line 1, column 3"],
    [`{{=${"<".repeat(150)} ${">".repeat(150)}=}}`, /^has a tag of more than 300 characters at line 1/],
    [`a\n{{a${" ".repeat(1001)}}}`, "has more than 1000 blanks in a row at line 2, column 4"],
    [`{{#${"a".repeat(60_000)}}}`, /^is no Mustache template: unclosed section "a{64}" at line 1/],
    [`{{=${"a".repeat(4000)} =}}`, /^is no Mustache template: .{0,100}$/],
    [`{{ =[ ]=}}${"[a]".repeat(2000)}`, "changes its delimiters, and has more than 4096 characters"],
  ])("%s", (template, rule) => {
    const broken = brokenTemplate(template);
    if (typeof rule === "string") expect(broken).toBe(rule);
    else expect(broken).toMatch(rule);
  });

  test.each([
    ["{{ if .x }}a{{ end }}", "{{ if .x }}", 1],
    ["{{ range .Alerts }}", "{{ range .Alerts }}", 1],
    ["on {{ .Labels.host }}", "{{ .Labels.host }}", 4],
    ["{{ with x }}", "{{ with x }}", 1],
    ["{{ else }}", "{{ else }}", 1],
    ["{{end}}", "{{ end }}", 1],
    ['{{ define "a" }}', '{{ define "a" }}', 1],
    ['{{ template "a" . }}', '{{ template "a" . }}', 1],
    ["{{ count | len }}", "{{ count | len }}", 1],
    ["{{count |len}}", "{{ count |len }}", 1],
    ["{{count| len}}", "{{ count| len }}", 1],
    ["{{.X}}", "{{ .X }}", 1],
    ["{{- .Status -}}", "{{ - .Status - }}", 1],
    ["{{#alerts}}{{ .Labels.a }}{{/alerts}}", "{{ .Labels.a }}", 12],
  ])("a tag of Go's templates: %s", (template, tag, column) => {
    const rule = `has a tag of Go's templates (${tag}) at line 1, column ${column}; templates are Mustache: docs/coming-from-alertmanager.md#templates translates them`;
    expect(brokenTemplate(template)).toBe(rule);
    expect(brokenTemplate(template, template)).toBeUndefined();
    expect(brokenTemplate(template, "another")).toBe(rule);
  });

  test.each(["{{#lines}}{{.}}{{/lines}}", "{{endsAt}}", "{{ending}}", "{{a|b}}", "{{template.x}}", "{{..}}"])(
    "no tag of Go's templates: %s",
    (template) => expect(brokenTemplate(template)).toBeUndefined(),
  );

  test.each([
    "",
    "{{a}}",
    "{{{a.b}}}",
    "{{&a}}",
    "{{#a}}{{^b}}{{/b}}{{/a}}",
    "}}",
    "{ {a} }",
    `${" ".repeat(1000)}x`.repeat(60),
  ])("what is one is not: %j", (template) => expect(brokenTemplate(template)).toBeUndefined());
});

describe("a result is bounded", () => {
  test("however often a long value is in it", async () => {
    const long = notificationOf({ event: { body: "<".repeat(65_536) } });
    const text = await rendered("{{event.body}}".repeat(4000), long);
    expect(text).toHaveLength(renderedCharsMax);
    expect(text.endsWith("…")).toBe(true);
  });

  test("and never cut within a character", async () => {
    const text = await made("a{{{x}}}", { x: "😀".repeat(10) }, plainText, 5);
    expect(text).toBe("a😀…");
  });
});

describe("the time of a rendering is bounded by its steps", () => {
  const alerts = Array.from({ length: 100 }, (_, i) => ({ status: "firing", labels: { host: `web-${i}` } }));
  const lines = Array.from({ length: 101 }, (_, i) => `line ${i}`);
  const listed: Variables = { alerts, firing: alerts, resolved: [], lines, event: { body: "<".repeat(65_536) }, z: "" };
  const filled = (piece: string, chars: number) => piece.repeat(Math.floor(chars / piece.length));
  const each = (inner: string) => `{{#alerts}}${inner}{{/alerts}}`;

  test.each([
    ["lists within lists", each(each(each("x")))],
    ["lists within lists of nothing", each(each(each("")))],
    ["as many tags as fit, for each member", each(filled("{{labels.host}}", 60_000))],
    ["names of many parts, for each member", each(filled(`{{${"a.".repeat(140)}a}}`, 60_000))],
    ["tags deep within sections", "{{#event}}".repeat(31) + filled("{{q}}", 60_000) + "{{/event}}".repeat(31)],
  ])("what visits too much is refused when stored, and fails when stored before: %s", async (_what, text) => {
    expect(brokenTemplate(text)).toMatch(/^takes up to \d+ steps to render; 600000 are allowed: nest fewer lists/);
    const before = process.threadCpuUsage();
    await expect(made(text, listed, html)).rejects.toThrow("the templates take more than 600000 steps");
    expect(spentMs(before)).toBeLessThan(turnMsMax);
  });

  test.each([
    ["tags of an address, for each member", each(filled("{{{z}}}", 3000)), address()],
    ["tags within a text of JSON", `"${filled("{{lines.x}}", 60_000)}"`, jsonMarkup()],
    ["letters before each tag of JSON", `"${each(filled("xx{{z}}", 2000))}"`, jsonMarkup()],
    ["lists within lists", each("{{#lines}}{{.}}{{/lines}}"), html],
    ["a long value", filled("{{event.body}}", 60_000), html],
  ])("what is accepted takes 250 ms of the processor at most, in slices: %s", async (_what, text, markup) => {
    expect(brokenTemplate(text)).toBeUndefined();
    const steps = newSteps();
    let slices = 0;
    const pace = () => (++slices % 1000 === 0 ? Promise.resolve() : undefined);
    const before = process.threadCpuUsage();
    await render(parseTemplate(text, steps), listed, markup, { steps, pace });
    expect(spentMs(before)).toBeLessThan(turnMsMax);
    expect(slices).toBeGreaterThan(0);
    expect(renderStepsMax - steps.left).toBeLessThanOrEqual(checkedTemplate(text).steps);
  });

  test("none takes more steps than were counted when it was stored", async () => {
    const name = fc.constantFrom("alerts", "firing", "lines", "labels.host", "event", "z", ".", "last", "a.b.c");
    const piece: fc.Memo<string> = fc.memo((depth) => {
      const leaf = fc.oneof(
        fc.constantFrom("x", "\n"),
        name.map((of) => `{{${of}}}`),
      );
      if (depth <= 1) return leaf;
      const section = fc
        .tuple(fc.constantFrom("#", "^"), name, fc.array(piece(), { maxLength: 3 }))
        .map(([sign, of, inner]) => `{{${sign}${of}}}${inner.join("")}{{/${of}}}`);
      return fc.oneof(leaf, section);
    });
    await fc.assert(
      fc.asyncProperty(piece(3), async (text) => {
        const { broken, steps: most } = checkedTemplate(text);
        fc.pre(broken === undefined && most <= renderStepsMax);
        const steps = newSteps();
        await render(parseTemplate(text, steps), listed, plainText, { steps, pace: () => undefined });
        expect(renderStepsMax - steps.left).toBeLessThanOrEqual(most);
      }),
      { numRuns: cases(300) },
    );
  });
});

test("templates render as the library's own renderer does", async () => {
  const names = ["a", "b", "group", "group.a", "group.inner.b", "none"];
  const tag = fc.constantFrom(...names);
  const piece: fc.Memo<string> = fc.memo((depth) => {
    const leaf = fc.oneof(
      fc.constantFrom("text ", "\n", " \r\n", "  ", "\t", "é", "{", "} "),
      tag.map((name) => `{{${name}}}`),
      tag.map((name) => `{{{${name}}}}`),
      tag.map((name) => `{{& ${name} }}`),
      tag.map((name) => `{{! ${name} }}`),
      tag.map((name) => `{{=<% %>=}}<%{ ${name} }%>{{${name}}}<%={{ }}=%>`),
    );
    if (depth <= 1) return leaf;
    const section = fc
      .tuple(fc.constantFrom("#", "^"), tag, fc.array(piece(), { maxLength: 4 }))
      .map(([sign, name, inner]) => `{{${sign}${name}}}${inner.join("")}{{/${name}}}`);
    return fc.oneof(leaf, section);
  });
  const variables: Variables = { a: "1 < 2 & 'three'", b: 0, group: { a: true, inner: { b: "ü" }, none: "" } };
  await fc.assert(
    fc.asyncProperty(fc.array(piece(3), { maxLength: 6 }), async (pieces) => {
      const template = pieces.join("");
      fc.pre(brokenTemplate(template) === undefined);
      // The library shows a group as [object Object].
      const theirs = Mustache.render(
        template,
        variables,
        {},
        { escape: (value: unknown) => escapeHtml(String(value)) },
      ).replaceAll("[object Object]", "");
      expect(await made(template, variables, { double: escapeHtml, triple: (text) => text })).toBe(theirs);
    }),
    { numRuns: cases(500) },
  );
});

test("a key that holds full stops is named as it is, within a section too", async () => {
  const dimensions = { "k8s.pod.name": "web-1", k8s: "x", "a.b": "", a: { b: "nested", c: "c" } };
  const shown = (template: string) => made(template, { entity: { dimensions } }, { double: String, triple: String });
  expect(await shown("{{entity.dimensions.k8s.pod.name}} {{entity.dimensions.k8s}} {{entity.dimensions.a.c}}")).toBe(
    "web-1 x c",
  );
  expect(await shown("{{#entity.dimensions}}{{k8s.pod.name}}{{/entity.dimensions}}")).toBe("web-1");
});

test("what the library's own parser takes for a template is one, and nothing else is", async () => {
  const pieces = [
    "{{",
    "}}",
    "{{{",
    "}}}",
    "{",
    "}",
    "#",
    "/",
    "^",
    "&",
    "!",
    "=",
    " ",
    "\n",
    "a",
    "b",
    ".",
    "<%",
    "%>",
  ];
  const text = fc.string({ unit: fc.constantFrom(...pieces), maxLength: 24 });
  const opened = fc.tuple(text, text).map(([before, after]) => `${before}{{#a}}${after}{{/a}}${before}`);
  const variables: Variables = { a: "1", b: { a: "2", b: "" } };
  await fc.assert(
    fc.asyncProperty(fc.oneof(text, opened), async (template) => {
      let theirs: string | undefined;
      try {
        theirs = Mustache.render(template, variables, {}, { escape: String }).replaceAll("[object Object]", "");
      } catch {
        theirs = undefined;
      }
      if (theirs === undefined) expect(brokenTemplate(template)).toBeDefined();
      else expect(await made(template, variables, { double: String, triple: String })).toBe(theirs);
    }),
    { numRuns: cases(5000) },
  );
});
