-- name: ListDue
-- What is due within `:within_ms`, in the whole cluster, the earliest first. The index is by slot, so it takes 4,096
-- probes, however many jobs there are. It is for people, not for controllers.
SELECT d.key, d.next_tick, d.next_execution, d.executing, d.schedule, d.anchor, d.policy,
       now() + :within_ms::bigint * interval '1 millisecond' AS until
FROM generate_series(0, 4095) slots (slot)
CROSS JOIN LATERAL (
    SELECT key, next_tick, next_execution, state = 'executing' AS executing, schedule, anchor, policy FROM cron_jobs
    WHERE slot = slots.slot AND next_execution IS NOT NULL
      AND next_execution <= now() + :within_ms::bigint * interval '1 millisecond'
      AND (:namespaces?::text[] IS NULL OR namespace = ANY(:namespaces))
    ORDER BY next_execution LIMIT :limit::integer OFFSET 0
) d
ORDER BY d.next_execution, d.key
LIMIT :limit;
