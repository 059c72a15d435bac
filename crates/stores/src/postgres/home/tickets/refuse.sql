-- Says why tickets are not taken. Arguments: $1 tickets, $2 why, $3 whether they wait for room.
-- Answer: none.

UPDATE :"schema".inbox
SET refused = said.refused, is_held = said.is_held
FROM unnest($1::bigint[], $2::text[], $3::boolean[]) AS said (ticket, refused, is_held)
WHERE inbox.ticket = said.ticket
