/** The classes of a style sheet by the names that it gives them. The build knows them; a test holds that each one is there. */
declare module "*.module.css" {
  const classes: Readonly<Record<string, string>>;
  export default classes;
}
