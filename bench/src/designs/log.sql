-- What is written once and deleted is not worth compressing.
CREATE TABLE tollgate_designs.log (
    seq bigint PRIMARY KEY,
    node bigint NOT NULL,
    effects bytea NOT NULL
);
ALTER TABLE tollgate_designs.log ALTER COLUMN effects SET STORAGE EXTERNAL;

CREATE TABLE tollgate_designs.calls (
    id bigint PRIMARY KEY,
    queue text NOT NULL,
    lane text NOT NULL,
    accepted timestamptz NOT NULL,
    payload bytea NOT NULL
);

CREATE TABLE tollgate_designs.parcels (
    seq bigint PRIMARY KEY,
    payloads bytea NOT NULL
);
ALTER TABLE tollgate_designs.parcels ALTER COLUMN payloads SET STORAGE EXTERNAL;
