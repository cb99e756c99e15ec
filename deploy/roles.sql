-- Two roles: the owner makes and upgrades the tables; the server reads and writes rows and cannot drop anything.
-- Runs once, as the superuser, in the database of the store.
\getenv owner_password OWNER_PASSWORD
\getenv server_password SERVER_PASSWORD
CREATE EXTENSION IF NOT EXISTS vector;
CREATE ROLE heedful_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE heedful_server LOGIN PASSWORD :'server_password';
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT CREATE, USAGE ON SCHEMA public TO heedful_owner;
GRANT USAGE ON SCHEMA public TO heedful_server;
ALTER DEFAULT PRIVILEGES FOR ROLE heedful_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO heedful_server;
ALTER DEFAULT PRIVILEGES FOR ROLE heedful_owner IN SCHEMA public
    GRANT USAGE, SELECT ON SEQUENCES TO heedful_server;
