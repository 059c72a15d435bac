CREATE TABLE tollgate_designs.jobs (
    id bigserial PRIMARY KEY,
    lane text NOT NULL,
    status text NOT NULL,
    accepted timestamptz NOT NULL,
    started timestamptz,
    payload bytea NOT NULL
);
CREATE INDEX waiting ON tollgate_designs.jobs (id) WHERE status = 'waiting';
