import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { SMTPServerOptions } from "smtp-server";
import { beforeAll, describe, expect, test } from "vitest";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { certificate } from "../../src/http/certificate.ts";
import { compose } from "../../src/notifications/kinds/kinds.ts";
import { type MailReceiver, mailReceiver } from "../support/receivers.ts";
import { type Site, site, type TypeInit } from "./kinds.ts";
import { metricNotification, notificationOf } from "./notifications.ts";

const sender = "Belfry <alerts@belfry.example.com>";
const relayAt = (url: string, timeoutMs = 10_000) => ({
  BELFRY_SMTP_URL: url,
  BELFRY_SMTP_SENDER: sender,
  BELFRY_OUTBOUND_TIMEOUT: `${timeoutMs}ms`,
});
const email = (value: object = {}): TypeInit => ({ case: "email", value: { to: "ops@example.com", ...value } });

interface Options {
  server?: SMTPServerOptions;
  /** Of the relay's address. */
  user?: string;
  query?: string;
  timeoutMs?: number;
}

let tls: { cert: string; key: string };
beforeAll(async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "relay-"));
  const { cert, key } = await certificate({ dataDir, host: "localhost", tlsCert: undefined, tlsKey: undefined });
  tls = { cert, key };
  await rm(dataDir, { recursive: true });
});

async function withRelay(
  { server = {}, user = "", query = "?tls.rejectUnauthorized=false", timeoutMs }: Options,
  run: (place: Site, mails: MailReceiver) => Promise<void>,
) {
  await using receiver = await mailReceiver({ ...tls, ...server });
  const url = `smtp://${user}127.0.0.1:${receiver.port}${query}`;
  await using place = await site({ env: relayAt(url, timeoutMs) });
  await run(place, receiver);
}

/** The value of a mail's own header, its lines joined. */
const header = (mail: string, name: string) => headerIn(mail.split("\r\n\r\n", 1)[0] as string, name);
const headerIn = (raw: string, name: string) =>
  new RegExp(`^${name}: (.*(?:\r\n[ \t].*)*)`, "im").exec(raw)?.[1]?.replaceAll("\r\n", "");

/** The bodies of a mail, decoded. */
function bodies(raw: string): string {
  return raw
    .replace(/=\r\n/g, "")
    .replace(/(?:=[\dA-F]{2})+/g, (bytes) => Buffer.from(bytes.replaceAll("=", ""), "hex").toString("utf8"));
}

function error(responseCode: number, message: string) {
  return Object.assign(new Error(message), { responseCode });
}

describe("a mail", () => {
  test("goes to the address, from the sender, with the destination's subject and body", () =>
    withRelay({}, async (place, { mails }) => {
      const body = "Hello,\n{{{event.summary}}} on {{{entity.dimensions.site}}}.";
      const outcome = await place.send(email({ subject: "{{{event.name}}}: {{{event.severity}}}", body }));
      expect(outcome).toMatchObject({ result: "sent", answer: expect.stringContaining("250") });
      expect(mails).toHaveLength(1);
      const { from, to, raw, secure } = mails[0] as (typeof mails)[0];
      expect({ from, to, secure }).toEqual({
        from: "alerts@belfry.example.com",
        to: ["ops@example.com"],
        secure: true,
      });
      expect(header(raw, "Subject")).toBe("disk-full: ERROR");
      expect(header(raw, "From")).toBe(sender);
      expect(header(raw, "To")).toBe("ops@example.com");
      expect(header(raw, "Auto-Submitted")).toBe("auto-generated");
      expect(header(raw, "Message-ID")).toBe("<019abcde-0000-7000-8000-000000000001@belfry.example.com>");
      expect(header(raw, "Content-Type")).toMatch(/^text\/plain/);
      expect(bodies(raw)).toContain("Hello,\r\nDisk /var is 97 % full on Köln.");
    }));

  test("whose subject renders to nothing has the rule's name there", () =>
    withRelay({}, async (place, { mails }) => {
      const notification = notificationOf({ event: { body: "" } });
      await place.send(email({ subject: " {{{event.body}}}", body: "x" }), { notification });
      expect(header(mails[0]?.raw ?? "", "Subject")).toBe("page-storage");
    }));

  test("carries any characters in its subject and body", () =>
    withRelay({}, async (place, { mails }) => {
      const notification = notificationOf({ event: { summary: "Платте 磁盘 😀 is full" } });
      await place.send(email({ subject: "{{{event.summary}}}", body: "{{{event.summary}}}" }), { notification });
      const { raw } = mails[0] as (typeof mails)[0];
      expect(header(raw, "Subject")).toMatch(/^=\?UTF-8\?B\?/);
      const words = (header(raw, "Subject") ?? "").matchAll(/=\?UTF-8\?B\?([^?]*)\?=/g);
      const subject = [...words].map(([, word]) => Buffer.from(word as string, "base64").toString("utf8")).join("");
      expect(subject).toBe("Платте 磁盘 😀 is full");
      expect(Buffer.from(raw.split("\r\n\r\n")[1] as string, "base64").toString("utf8")).toContain("磁盘 😀");
    }));

  test("whose body begins with a tag is HTML, and values are escaped where asked", () =>
    withRelay({}, async (place, { mails }) => {
      const notification = notificationOf({ event: { summary: "<script>" } });
      await place.send(email({ body: "<p>{{event.summary}} {{{link}}}</p>" }), { notification });
      const { raw } = mails[0] as (typeof mails)[0];
      expect(header(raw, "Content-Type")).toMatch(/^text\/html; charset=utf-8/);
      expect(bodies(raw)).toContain("<p>&lt;script&gt; <a href=");
    }));

  test("whose body does not is text, whatever its values begin with", () =>
    withRelay({}, async (place, { mails }) => {
      const notification = notificationOf({ event: { summary: "<b>x</b>" } });
      await place.send(email({ body: "{{{event.summary}}}" }), { notification });
      expect(header((mails[0] as (typeof mails)[0]).raw, "Content-Type")).toMatch(/^text\/plain/);
    }));

  test("of a destination without texts has good ones, as text and as HTML", () =>
    withRelay({}, async (place, { mails }) => {
      await place.send(email());
      await place.send(email(), { notification: notificationOf({ occasion: "clear", clear: true }) });
      await place.send(email(), { notification: metricNotification() });
      const [first, clear, metric] = mails.map(({ raw }) => raw) as [string, string, string];
      expect(header(first, "Subject")).toBe("ERROR: disk-full on web-1: Disk /var is 97 % full");
      expect(header(first, "Content-Type")).toMatch(/^multipart\/alternative/);
      expect(bodies(first)).toMatch(
        /Severity: ERROR\r\nSince: 2026-11-22 09:30:00 UTC\r\nSeen: 3 times\r\ntype: storage\r\nsite: Köln/,
      );
      expect(bodies(first)).toContain("Rule: page-storage (trigger disks)");
      expect(bodies(first)).toContain("https://belfry.example.com/console/#/occurrences/");
      expect(header(clear, "Subject")).toBe("Resolved: disk-full on web-1: Disk /var is 97 % full");
      expect(bodies(clear)).toContain("RESOLVED");
      expect(bodies(metric)).toContain("cpu.busy is 97.5 on web-1");
    }));

  test("has each sign of a value once, in its subject and as HTML", () =>
    withRelay({}, async (place, { mails }) => {
      const { rule } = notificationOf();
      const notification = notificationOf({
        rule: { ...rule, message: "{{event.summary}}" },
        event: { summary: "a & b" },
      });
      await place.send(email({ subject: "{{event.summary}}" }), { notification });
      const { raw } = mails[0] as (typeof mails)[0];
      expect(header(raw, "Subject")).toBe("a & b");
      expect(bodies(raw)).toContain("a &amp; b");
      expect(bodies(raw)).not.toContain("&amp;amp;");
    }));

  test("that follows another is a reply to the first", () =>
    withRelay({}, async (place, { mails }) => {
      const first = await place.send(email());
      expect(first.state).toEqual({ messageId: "019abcde-0000-7000-8000-000000000001@belfry.example.com" });
      const notification = notificationOf({ id: "019abcde-0000-7000-8000-000000000002", occasion: "acknowledged" });
      const second = await place.send(email(), { notification, state: first.state });
      expect(second.state).toEqual(first.state);
      const { raw } = mails[1] as (typeof mails)[0];
      expect(header(raw, "Message-ID")).toBe("<019abcde-0000-7000-8000-000000000002@belfry.example.com>");
      expect(header(raw, "In-Reply-To")).toBe("<019abcde-0000-7000-8000-000000000001@belfry.example.com>");
      expect(header(raw, "References")).toBe("<019abcde-0000-7000-8000-000000000001@belfry.example.com>");
    }));

  test("cannot be given further headers or recipients by a value", () =>
    withRelay({}, async (place, { mails }) => {
      const notification = notificationOf({ event: { summary: "x\r\nBcc: victim@example.com\r\n\r\nbody" } });
      await place.send(email({ subject: "{{{event.summary}}}" }), { notification });
      const { to, raw } = mails[0] as (typeof mails)[0];
      expect(to).toEqual(["ops@example.com"]);
      expect(header(raw, "Bcc")).toBeUndefined();
      expect(header(raw, "Subject")).toBe("x Bcc: victim@example.com body");
    }));

  test("has a subject of 200 characters at most", () =>
    withRelay({}, async (place, { mails }) => {
      await place.send(email({ subject: "word ".repeat(100) }));
      const subject = header((mails[0] as (typeof mails)[0]).raw, "Subject") ?? "";
      expect(Buffer.byteLength(subject)).toBeLessThan(400);
    }));
});

describe("the relay", () => {
  const onAuth: SMTPServerOptions["onAuth"] = ({ username, password }, session, callback) => {
    if (username === "belfry" && password === "p@ss word") callback(null, { user: `${username}${session.secure}` });
    else callback(error(535, "5.7.8 wrong"));
  };

  test("is logged in to, over TLS", () =>
    withRelay({ server: { onAuth, authOptional: false }, user: "belfry:p%40ss%20word@" }, async (place, { mails }) => {
      expect((await place.send(email())).result).toBe("sent");
      expect(mails[0]?.user).toBe("belfrytrue");
    }));

  test("that refuses the log-in ends it", () =>
    withRelay({ server: { onAuth, authOptional: false }, user: "belfry:wrong-password@" }, async (place) => {
      const outcome = await place.send(email());
      expect(outcome).toMatchObject({ result: "failed", reason: "unauthorized", course: "fail" });
      expect(JSON.stringify(outcome)).not.toContain("wrong-password");
    }));

  test("without TLS gets no password", () => {
    let asked = 0;
    const server: SMTPServerOptions = {
      hideSTARTTLS: true,
      disabledCommands: ["STARTTLS"],
      allowInsecureAuth: true,
      onAuth(_auth, _session, callback) {
        asked++;
        callback(null, { user: "x" });
      },
    };
    return withRelay({ server, user: "belfry:secret@" }, async (place) => {
      expect((await place.send(email())).result).toBe("failed");
      expect(asked).toBe(0);
    });
  });

  test("without TLS gets one when the operator says so", () =>
    withRelay(
      {
        server: {
          hideSTARTTLS: true,
          disabledCommands: ["STARTTLS"],
          allowInsecureAuth: true,
          onAuth: (_auth, _session, callback) => callback(null, { user: "x" }),
        },
        user: "belfry:secret@",
        query: "?ignoreTLS=true",
      },
      async (place) => expect((await place.send(email())).result).toBe("sent"),
    ));

  test("with a certificate that no one vouches for gets nothing", () =>
    withRelay({ query: "" }, async (place, { mails }) => {
      expect(await place.send(email())).toMatchObject({ result: "failed", course: "retry" });
      expect(mails).toEqual([]);
    }));

  const refusing = (command: "onMailFrom" | "onRcptTo", code: number): SMTPServerOptions => ({
    [command]: (_address: unknown, _session: unknown, callback: (refusal: Error) => void) =>
      callback(error(code, `${code} said so`)),
  });

  test.each([
    ["the recipient with 550", refusing("onRcptTo", 550), "rejected", "fail"],
    ["the recipient with 450", refusing("onRcptTo", 450), "busy", "retry"],
    ["the recipient with 452", refusing("onRcptTo", 452), "busy", "retry"],
    ["the sender with 553", refusing("onMailFrom", 553), "rejected", "fail"],
    ["the sender with 421", refusing("onMailFrom", 421), "busy", "retry"],
    [
      "the connection with 421",
      { onConnect: (_session, callback) => callback(error(421, "too many")) },
      "busy",
      "retry",
    ],
    [
      "the connection with 554",
      { onConnect: (_session, callback) => callback(error(554, "no service")) },
      "rejected",
      "fail",
    ],
    ["the mail with 552", { onData: drain((callback) => callback(error(552, "too large"))) }, "rejected", "fail"],
    ["the mail with 451", { onData: drain((callback) => callback(error(451, "later"))) }, "busy", "retry"],
  ] satisfies [string, SMTPServerOptions, string, string][])("refuses %s", (_name, server, reason, course) =>
    withRelay({ server }, async (place) => {
      const outcome = await place.send(email());
      expect(outcome).toMatchObject({ result: "failed", reason, course });
    }),
  );

  test("that is silent after the mail has no more than the time limit", () =>
    withRelay({ server: { onData: drain(() => {}) }, timeoutMs: 1500 }, async (place) => {
      expect(await place.send(email())).toMatchObject({ result: "failed", reason: "timeout", course: "retry" });
    }));

  test("that breaks the connection after the mail gets it again under the same Message-ID", async () => {
    const seen: string[] = [];
    let cut = () => {};
    const server: SMTPServerOptions = {
      onData(stream, _session, callback) {
        let raw = "";
        stream.on("data", (chunk) => {
          raw += chunk;
        });
        stream.on("end", () => {
          seen.push(header(raw, "Message-ID") ?? "");
          if (seen.length > 1) callback();
          else cut();
        });
      },
    };
    await withRelay({ server }, async (place, relay) => {
      cut = relay.cut;
      expect(await place.send(email())).toMatchObject({ result: "failed", reason: "network", course: "retry" });
      expect((await place.send(email())).result).toBe("sent");
    });
    expect(seen).toHaveLength(2);
    expect(seen[0]).toBe(seen[1]);
  });

  test("that is not there is tried again", async () => {
    const receiver = await mailReceiver(tls);
    await receiver[Symbol.asyncDispose]();
    await using place = await site({ env: relayAt(`smtp://127.0.0.1:${receiver.port}`) });
    expect(await place.send(email())).toMatchObject({ result: "failed", reason: "network", course: "retry" });
  });

  test("that greets no one has no more than the time limit", () =>
    withRelay({ server: { onConnect: () => {} }, timeoutMs: 400 }, async (place) => {
      expect(await place.send(email())).toMatchObject({ result: "failed", reason: "timeout", course: "retry" });
    }));

  test("is ended by the caller", () =>
    withRelay({ server: { onConnect: () => {} } }, async (place) => {
      const signal = AbortSignal.timeout(50);
      expect(await place.send(email(), { signal })).toMatchObject({ result: "failed", reason: "timeout" });
    }));

  test("that was not set is named", async () => {
    await using place = await site();
    expect(await place.send(email())).toMatchObject({
      result: "failed",
      reason: "not_configured",
      course: "fail",
      answer: expect.stringContaining("BELFRY_SMTP_URL"),
    });
  });
});

function drain(then: (callback: (refusal?: Error) => void) => void): NonNullable<SMTPServerOptions["onData"]> {
  return (stream, _session, callback) => {
    stream.resume();
    stream.on("end", () => then(callback));
  };
}

test("what it would send is its subject and its text", async () => {
  await using place = await site();
  const type = create(DestinationTypeSchema, { type: email({ body: "{{{event.summary}}}" }) });
  expect(await compose(type, notificationOf(), place.world)).toEqual({
    subject: "ERROR: disk-full on web-1: Disk /var is 97 % full",
    body: "Disk /var is 97 % full",
  });
});
