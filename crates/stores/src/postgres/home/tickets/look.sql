-- Whether there are tickets. Arguments: none.
-- Answer: whether some were not tried, whether some wait for room, and whether some were refused.

SELECT
  EXISTS (SELECT FROM :"schema".inbox WHERE refused IS NULL),
  EXISTS (SELECT FROM :"schema".inbox WHERE is_held),
  EXISTS (SELECT FROM :"schema".inbox WHERE refused IS NOT NULL AND NOT is_held)
