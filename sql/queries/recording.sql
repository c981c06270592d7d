-- The audit log, as changes write it: in their own transaction.

-- name: RecordChanges
-- What one call has changed: parallel arrays, `:befores` and `:afters` are JSON. The instant is that of this statement:
-- the transaction may have waited for locks before.
INSERT INTO cron_audit_log (at, principal, method, origin, namespace, subject, before, after, remark, controller_id)
SELECT statement_timestamp(), :principal, :method, :origin, c.namespace, c.subject, c.before, c.after, :remark,
       :controller_id
FROM unnest(:namespaces::text[], :subjects::text[], :befores[?]::text[], :afters[?]::text[])
    AS c (namespace, subject, before, after);
