import { goTo, linkTo } from "../../data/address.ts";
import { credentialTypes } from "./credential-types.ts";
import { CredentialForm } from "./form.tsx";

/** The form of a new credential, which begins with a type. */
export function NewCredential({ type }: { type: string }) {
  return (
    <>
      <div class="screen-head">
        <div>
          <p class="hint">
            <a href={linkTo(["settings", "credentials"])}>Credentials</a>
          </p>
          <h1>New credential</h1>
        </div>
      </div>
      <div class="scroll">
        <CredentialForm
          type={Object.hasOwn(credentialTypes, type) ? type : "usernamePassword"}
          onSaved={({ id }) => goTo(linkTo(["settings", "credentials", id]))}
        />
      </div>
    </>
  );
}
