import { create } from "@bufbuild/protobuf";
import {
  BasicAuthorizationSchema,
  type ItsmDestination,
  OAuthAuthorizationSchema,
} from "#gen/belfry/notifications/v1/destination_pb.ts";
import { ChoiceField, NumberField, TextField } from "../../../form/fields.tsx";
import { CredentialField } from "./credential-field.tsx";
import { BasicFields, OAuthFields } from "./itsm-log-in.tsx";
import type { DestinationKind, KindProps } from "./kind.ts";
import { TemplateField } from "./template-field.tsx";

export const itsm: DestinationKind<ItsmDestination> = {
  word: "ServiceNow (itsm)",
  about: "One incident for each match: created, updated by work notes, and closed when it is over.",
  testLeaves: "A test creates an incident there.",
  where: ({ baseUrl }) => baseUrl,
  Fields: (props) => {
    const { form, path, value, set } = props;
    return (
      <>
        <TextField
          form={form}
          path={`${path}.baseUrl`}
          label="Address of the instance"
          placeholder="https://<instance>.service-now.com"
          required
          value={value.baseUrl}
          set={(baseUrl) => set({ baseUrl })}
        />
        <LogIn {...props} />
        <TemplateField
          form={form}
          path={`${path}.shortDescription`}
          label="Short description"
          empty="the message of the rule."
          value={value.shortDescription}
          set={(shortDescription) => set({ shortDescription })}
        />
        <Closing {...props} />
      </>
    );
  },
};

/** How it logs in: by user name and password or by OAuth; each with its secrets here, or with a stored credential. */
function LogIn({ form, path, value, stored, set }: KindProps<ItsmDestination>) {
  const { authorization, credentialId } = value;
  const byOAuth = authorization.case === "oauth";
  const before = stored?.authorization;
  const own = () => (before?.case === "basic" ? before.value : create(BasicAuthorizationSchema));
  return (
    <fieldset>
      <legend>Log-in</legend>
      <ChoiceField
        form={form}
        path={`${path}.authorization`}
        label="By"
        value={byOAuth ? "oauth" : "basic"}
        choices={[
          ["basic", "user name and password"],
          ["oauth", "OAuth with a refresh token"],
        ]}
        set={(by) => {
          const oauth = before?.case === "oauth" ? before.value : create(OAuthAuthorizationSchema);
          set({
            credentialId: "",
            authorization: by === "oauth" ? { case: "oauth", value: oauth } : { case: "basic", value: own() },
          });
        }}
      />
      <CredentialField
        key={byOAuth}
        form={form}
        path={`${path}.credentialId`}
        label={byOAuth ? "Client from" : "User name and password from"}
        type={byOAuth ? "itsmOAuth" : "usernamePassword"}
        none="the fields below"
        value={credentialId}
        set={(id) => {
          if (authorization.case === "oauth") {
            const client = id === "" && before?.case === "oauth" ? before.value : { clientId: "", clientSecret: "" };
            const { clientId, clientSecret } = client;
            const oauth = create(OAuthAuthorizationSchema, { ...authorization.value, clientId, clientSecret });
            set({ credentialId: id, authorization: { case: "oauth", value: oauth } });
          } else {
            set({
              credentialId: id,
              authorization: id === "" ? { case: "basic", value: own() } : { case: undefined },
            });
          }
        }}
      />
      {authorization.case === "oauth" ? (
        <OAuthFields
          form={form}
          path={`${path}.oauth`}
          value={authorization.value}
          ownClient={credentialId === ""}
          set={(oauth) => set({ authorization: { case: "oauth", value: oauth } })}
        />
      ) : (
        credentialId === "" && (
          <BasicFields
            form={form}
            path={`${path}.basic`}
            value={authorization.case === "basic" ? authorization.value : create(BasicAuthorizationSchema)}
            set={(basic) => set({ authorization: { case: "basic", value: basic } })}
          />
        )
      )}
    </fieldset>
  );
}

function Closing({ form, path, value, set }: KindProps<ItsmDestination>) {
  return (
    <fieldset>
      <legend>When it is over</legend>
      <NumberField
        form={form}
        path={`${path}.closeState`}
        label="State"
        whole
        help="The number that a closed incident gets. Empty: 6, resolved."
        value={value.closeState || undefined}
        set={(closeState) => set({ closeState: closeState ?? 0 })}
      />
      <TextField
        form={form}
        path={`${path}.closeCode`}
        label="Close code"
        help="Which ones there are differs by instance: System Definition, Choice Lists. Empty: none."
        value={value.closeCode}
        set={(closeCode) => set({ closeCode })}
      />
      <TemplateField
        form={form}
        path={`${path}.closeNotes`}
        label="Close notes"
        empty="the message of the rule."
        value={value.closeNotes}
        set={(closeNotes) => set({ closeNotes })}
      />
    </fieldset>
  );
}
