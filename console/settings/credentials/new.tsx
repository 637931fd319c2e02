import { goTo, linkTo } from "../../data/address.ts";
import { ScreenHead } from "../../ui/screen-head.tsx";
import { credentialTypes } from "./credential-types.ts";
import { CredentialForm } from "./form.tsx";

/** The form of a new credential, which begins with a type. */
export function NewCredential({ type }: { type: string }) {
  return (
    <>
      <ScreenHead title="New credential" above={["Credentials", linkTo(["settings", "credentials"])]} />
      <div class="scroll">
        <CredentialForm
          type={Object.hasOwn(credentialTypes, type) ? type : "usernamePassword"}
          onSaved={({ id }) => goTo(linkTo(["settings", "credentials", id]))}
        />
      </div>
    </>
  );
}
