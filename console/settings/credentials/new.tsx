import { goTo, linkTo } from "../../data/address.ts";
import { ScreenHead } from "../../ui/screen-head.tsx";
import ui from "../../ui/ui.module.css";
import { credentialTypes } from "./credential-types.ts";
import { CredentialForm } from "./form.tsx";

/** The form of a new credential, which begins with a type. */
export function NewCredential({ type }: { type: string }) {
  return (
    <>
      <ScreenHead title="New credential" above={["Credentials", linkTo(["settings", "credentials"])]} />
      <div class={ui.scroll}>
        <CredentialForm
          type={Object.hasOwn(credentialTypes, type) ? type : "usernamePassword"}
          onSaved={({ id }) => goTo(linkTo(["settings", "credentials", id]))}
        />
      </div>
    </>
  );
}
