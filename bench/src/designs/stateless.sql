-- A lane's numbers change with each batch; with room on its page that costs no index anything.
CREATE TABLE tollgate_designs.lanes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lane text NOT NULL UNIQUE,
    next_seq bigint NOT NULL,
    cursor bigint NOT NULL,
    ready boolean NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX ready ON tollgate_designs.lanes (id) WHERE ready;

CREATE TABLE tollgate_designs.meters (
    lane bigint PRIMARY KEY,
    level bigint NOT NULL,
    changed_at bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE tollgate_designs.calls (
    lane bigint NOT NULL,
    seq bigint NOT NULL,
    accepted timestamptz NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (lane, seq)
);

CREATE TABLE tollgate_designs.leases (
    lane bigint NOT NULL,
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    token bigint NOT NULL,
    expires timestamptz NOT NULL,
    PRIMARY KEY (lane, from_seq)
);
CREATE INDEX expires ON tollgate_designs.leases (expires);
