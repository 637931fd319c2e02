import type { TeamChatDestination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { SecretField, TextField } from "../../../form/fields.tsx";
import { CredentialField } from "./credential-field.tsx";
import type { DestinationKind } from "./kind.ts";

export const teamChat: DestinationKind<TeamChatDestination> = {
  word: "Slack (teamChat)",
  about: "The message of the rule in a channel. What follows about the same match goes into its thread.",
  where: ({ channel }) => `#${channel}`,
  Fields: ({ form, path, value, stored, set }) => (
    <>
      <TextField
        form={form}
        path={`${path}.channel`}
        label="Channel"
        help="Its name, without the number sign."
        required
        value={value.channel}
        set={(channel) => set({ channel })}
      />
      <CredentialField
        form={form}
        path={`${path}.credentialId`}
        label="Token from"
        type="teamChat"
        none="the token below"
        value={value.credentialId}
        set={(credentialId) => set({ credentialId, token: credentialId === "" ? (stored?.token ?? "") : "" })}
      />
      {value.credentialId === "" && (
        <SecretField
          form={form}
          path={`${path}.token`}
          label="Token"
          help="Of the app's bot (xoxb-…), with the scope chat:write, and chat:write.public for channels that it has not joined."
          required
          value={value.token}
          set={(token) => set({ token })}
        />
      )}
      <TextField
        form={form}
        path={`${path}.color`}
        label="Colour of the bar"
        placeholder="#d7263d"
        help="Empty: by severity. What is over is green."
        value={value.color}
        set={(color) => set({ color })}
      />
    </>
  ),
};
