import { goTo, linkTo } from "../../data/address.ts";
import { DestinationForm } from "./form.tsx";

export function NewDestination() {
  return (
    <>
      <div class="screen-head">
        <div>
          <p class="hint">
            <a href={linkTo(["rules", "destinations"])}>Destinations</a>
          </p>
          <h1>New destination</h1>
        </div>
      </div>
      <div class="scroll">
        <DestinationForm onSaved={({ name }) => goTo(linkTo(["rules", "destinations", name]))} />
      </div>
    </>
  );
}
