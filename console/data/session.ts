import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { computed, effect, signal } from "@preact/signals";
import { Permission, permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import { ApiClientType } from "#gen/belfry/tenants/v1/api_client_pb.ts";
import { type Session, SessionService } from "#gen/belfry/tenants/v1/session_service_pb.ts";
import { clientOf, type Failure, failureOf, isAway, refusals } from "./calls.ts";
import { forgetAnswers } from "./last-answers.ts";
import { say, unsay } from "./notice.ts";
import { keepSessionProof } from "./session-proof.ts";
import { forgetWaysBack } from "./way-back.ts";

const sessions = clientOf(SessionService);

/** The session of this browser: undefined until the server has said, null when there is none. */
export const session = signal<Session | null | undefined>(undefined);

const sessionId = computed(() => session.value?.id);

/** Why the last attempt to log in failed, or why the session ended. */
export const logInFailure = signal<Failure | undefined>(undefined);

/** Other tabs of this browser learn of a log-in and of a log-out. */
let others: BroadcastChannel | undefined;

/** The token of a link that logs in, until the server has said whether there is a session. */
let firstToken: string | undefined;

const linkForm = /^#first=([^&]+)/;

/** Finds the session, and follows what ends it or makes another one. Called once, at the start. */
export function startSession(): void {
  others = new BroadcastChannel("belfry.session");
  others.onmessage = () => void findSession();
  // A link that is opened where the page is open already changes the address alone.
  addEventListener("hashchange", () => {
    if (linkForm.test(location.hash)) void findSession();
  });
  effect(() => {
    sessionId.value;
    unsay();
    forgetAnswers();
    forgetWaysBack();
  });
  // A call that was refused: the key was revoked or has expired, or the session came to its end.
  effect(() => {
    if (refusals.value > 0 && session.peek()) {
      logInFailure.value = {
        message: "The session has ended, or its key was revoked. Log in to go on where you were.",
        fields: [],
      };
      session.value = null;
    }
  });
  void findSession();
}

/** A question to the person: whether a link may replace the session that there is. Undefined: nothing is asked. */
export const replacing = signal<{ readonly question: string; answer(yes: boolean): void } | undefined>(undefined);

function askToReplace({ tenant, client }: Session): Promise<boolean> {
  const question = `You are logged in to the tenant "${tenant}" with a key of "${client}". Log in by this link instead?`;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const answer = (yes: boolean) => {
    replacing.value = undefined;
    resolve(yes);
  };
  replacing.value = { question, answer };
  return promise;
}

/**
 * Reads the session. A link with `#first=<token>` makes one; its token leaves the address before anything else happens. Where
 * there is a session the person is asked: another person may have sent the link, to see what is done here.
 */
export async function findSession(): Promise<void> {
  const token = linkForm.exec(location.hash)?.[1];
  if (token !== undefined) {
    history.replaceState(null, "", "#/events");
    dispatchEvent(new HashChangeEvent("hashchange"));
    firstToken = decodeURIComponent(token);
  }
  let found: Session | null = null;
  try {
    found = (await sessions.getSession({})).session ?? null;
    if (found !== null || firstToken === undefined) session.value = found;
    if (found !== null && firstToken !== undefined) {
      // It is asked once, by the call that came first, of the link that was opened last.
      if (replacing.peek() !== undefined) return;
      if (!(await askToReplace(found))) firstToken = undefined;
    }
  } catch (error) {
    if (isAway(error)) return void setTimeout(() => void findSession(), 2000);
    // Whether there is a session is not known: the link holds on, and can be opened again.
    if (ConnectError.from(error).code !== Code.Unauthenticated && firstToken !== undefined) {
      firstToken = undefined;
      logInFailure.value = failureOf(error);
    }
    if (firstToken === undefined) session.value = null;
  }
  if (firstToken === undefined) return;
  const proof = { case: "firstToken", value: firstToken } as const;
  firstToken = undefined;
  await logIn(proof, found);
}

/** Makes a session. One that there is already ends only when another one was made. */
export async function logIn(
  proof: { case: "key" | "firstToken"; value: string },
  before: Session | null = null,
): Promise<void> {
  logInFailure.value = undefined;
  try {
    const { session: made, pageProof } = await sessions.createSession({ proof });
    keepSessionProof(pageProof);
    // Whoever may read nothing would see screens that fail, one and all.
    if (made !== undefined && held[made.role] === undefined) {
      await logOut();
      const only =
        made.clientType === ApiClientType.USER_MANAGEMENT ? "manage accounts and groups through the API" : "send data";
      const message = `This key can only ${only}, so there is nothing to show. Log in with a person's key.`;
      logInFailure.value = { message, fields: [] };
      return;
    }
    session.value = made ?? null;
    others?.postMessage("made");
  } catch (error) {
    session.value = before;
    if (before === null) logInFailure.value = failureOf(error);
    else say(`The link did not log in: ${failureOf(error).message}`);
  }
}

export async function logOut(): Promise<void> {
  // A call under way that is refused meanwhile is no session that ended by itself.
  session.value = undefined;
  await sessions.deleteSession({}).catch(() => undefined);
  keepSessionProof(null);
  session.value = null;
  others?.postMessage("ended");
}

const held: Readonly<Record<string, readonly Permission[]>> = {
  read_only_user: [Permission.READ],
  user: [Permission.READ, Permission.OPERATE, Permission.INGEST],
  manager: Object.values(Permission).filter((each) => typeof each === "number"),
};

/** Whether the session's key may call this RPC: only then is there a button for it. The server decides all the same. */
export function may(method: DescMethod): boolean {
  return held[session.value?.role ?? ""]?.includes(getOption(method, permission)) ?? false;
}
