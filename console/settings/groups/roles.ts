/** The roles of a group, by their names in the API. */
const roles: Readonly<Record<string, string>> = {
  read_only_user: "Read Only User",
  user: "User",
  key_creator: "Key Creator",
  key_administrator: "Key Administrator",
  manager: "Manager",
  delegate_to_collection_zone: "Delegate to Collection Zone",
};

export const roleNames = Object.keys(roles);

export const roleWord = (role: string) => roles[role] ?? role;
