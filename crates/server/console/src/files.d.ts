// What is imported for its effect alone.
declare module "*.css";
