import { createTransport } from "nodemailer";

/** An e-mail to one address. */
export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text?: string;
  readonly html?: string;
  /** Without its brackets. */
  readonly messageId: string;
  /** The Message-ID that it answers, likewise. */
  readonly inReplyTo?: string;
}

/** The operator's mail relay. */
export interface Relay {
  /** The domain of the sender's address. */
  readonly domain: string;
  /** Answers what the relay said. @throws nodemailer's error */
  send(mail: Mail, signal: AbortSignal): Promise<string>;
}

export interface RelayOptions {
  /** `smtp://host:587` or `smtps://host`, with user name and password when the relay wants them. */
  readonly url: string;
  /** `monitoring@example.com`, or with a name: `Monitoring <monitoring@example.com>`. */
  readonly sender: string;
  readonly timeoutMs: number;
}

/** Sends by a relay, a connection a mail: one that was kept may be dead without a sign, which costs a try. */
export function mailRelay({ url, sender, timeoutMs }: RelayOptions): Relay {
  const { username, searchParams } = new URL(url);
  const says = (name: string) => searchParams.has(name);
  const transport = createTransport({
    url,
    // A password goes over TLS, unless the operator says otherwise in this many words.
    ...(username !== "" && !says("requireTLS") && !says("ignoreTLS") ? { requireTLS: true } : {}),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    domain: /@([^@>\s]+)>?$/.exec(sender)?.[1] ?? "belfry.invalid",
    async send({ to, messageId, inReplyTo, ...content }, signal) {
      const info = await transport.sendMail({
        ...content,
        from: sender,
        to: { name: "", address: to },
        messageId: `<${messageId}>`,
        ...(inReplyTo === undefined ? {} : { inReplyTo: `<${inReplyTo}>`, references: `<${inReplyTo}>` }),
        headers: { "Auto-Submitted": "auto-generated" },
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      });
      return String(info.response);
    },
  };
}
