-- The audit log: its chain is sealed, read and cut, and refusals are written into it. (Changes are written with what
-- they change.)

-- name: CountUnsealed
-- How many rows are not sealed, at most `:limit`, and when the oldest was written; null: there is none.
SELECT count(*) AS unsealed, min(at) AS oldest, now() AS now
FROM (SELECT at FROM cron_audit_log WHERE seq IS NULL ORDER BY id LIMIT :limit) u;

-- name: TakeAuditChain
-- Locks the chain, and returns its last position. No row: another controller seals or cuts.
SELECT head_seq, head_hash FROM cron_audit_chain FOR UPDATE SKIP LOCKED;

-- name: GetUnsealedRows
-- Rows that are committed and not sealed, until they have `:bytes_max` together.
SELECT id, at, refused, times, principal, method, origin, namespace, subject, before, after, remark, controller_id
FROM (SELECT *, sum(coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0))
                OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes
      FROM cron_audit_log WHERE seq IS NULL ORDER BY id LIMIT :limit) u
WHERE coalesce(bytes, 0) < :bytes_max::bigint
ORDER BY id;

-- name: SealRows
-- Parallel arrays. No writer waits for it: rows that are not committed yet are not among them.
UPDATE cron_audit_log l SET seq = s.seq, hash = s.hash
FROM unnest(:ids::bigint[], :seqs::bigint[], :hashes::bytea[]) s (id, seq, hash)
WHERE l.id = s.id;

-- name: MoveAuditHead
-- Of a chain that was taken.
UPDATE cron_audit_chain SET head_seq = :seq, head_hash = :hash;

-- name: GetAuditChain
SELECT c.cut_seq, c.cut_hash, c.head_seq, c.head_hash,
       (SELECT count(*) FROM (SELECT FROM cron_audit_log WHERE seq IS NULL LIMIT :limit) u) AS unsealed
FROM cron_audit_chain c;

-- name: ReadAuditChain
-- In the order of the chain, until they have `:bytes_max` together.
SELECT id, at, refused, times, principal, method, origin, namespace, subject, before, after, remark, controller_id, seq,
       hash
FROM (SELECT *, sum(coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0))
                OVER (ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes
      FROM cron_audit_log WHERE seq > :after_seq ORDER BY seq LIMIT :limit) r
WHERE coalesce(bytes, 0) < :bytes_max::bigint
ORDER BY seq;

-- name: GetAuditHash
-- Of a row of the chain; no row: there is none.
SELECT hash FROM cron_audit_log WHERE seq = :seq;

-- name: ListAuditLog
-- The latest first, from before `:before_at` and `:before_id` on. `:namespaces` null: all rows, those of the cluster,
-- too. Texts "": any. `:subject` and `:method`: a part of it.
SELECT id, at, refused, times, principal, method, origin, namespace, subject, before, after, remark, controller_id,
       coalesce(seq, 0) AS seq, coalesce(hash, '') AS hash
FROM cron_audit_log
WHERE (at, id) < (:before_at, :before_id)
  AND at >= :since
  AND (:namespaces?::text[] IS NULL OR namespace = ANY (:namespaces) AND namespace > '')
  AND (:namespace = '' OR namespace = :namespace)
  AND (:principal = '' OR principal = :principal)
  AND (:method = '' OR strpos(method, :method) > 0)
  AND (:subject = '' OR strpos(subject, :subject) > 0)
  AND (:refusals OR refused IS NULL)
  AND (:changes OR refused IS NOT NULL)
ORDER BY at DESC, id DESC
LIMIT :limit;

-- name: NoteRefusals
-- Parallel arrays. `:ages_ms`: how long ago the first one of each was.
INSERT INTO cron_audit_log (at, refused, times, principal, method, origin, subject, remark, controller_id)
SELECT now() - r.age_ms * interval '1 millisecond', r.refused, r.times, r.principal, r.method, r.origin, '', r.why,
       :controller_id
FROM unnest(:ages_ms::bigint[], :refused::text[], :times::bigint[], :principals::text[], :methods::text[],
            :origins::text[], :whys::text[]) r (age_ms, refused, times, principal, method, origin, why);

-- name: CutAuditChain
-- Moves the cut behind the first rows that are older than `:kept_ms`, at most `:limit`. No row: there are none, or
-- another controller seals or cuts. DropCutRows removes the rows, in the same transaction.
WITH chain AS MATERIALIZED (SELECT cut_seq FROM cron_audit_chain FOR UPDATE SKIP LOCKED),
     eldest AS MATERIALIZED (
    SELECT l.seq, l.hash, l.at < now() - :kept_ms::bigint * interval '1 millisecond' AS old
    FROM chain c CROSS JOIN LATERAL (
        SELECT seq, hash, at FROM cron_audit_log WHERE seq > c.cut_seq ORDER BY seq LIMIT :limit) l),
     last AS (
    SELECT seq, hash FROM eldest
    WHERE old AND seq < coalesce((SELECT min(seq) FROM eldest WHERE NOT old), 9223372036854775807)
    ORDER BY seq DESC LIMIT 1)
UPDATE cron_audit_chain SET cut_seq = last.seq, cut_hash = last.hash FROM last
RETURNING cut_seq;

-- name: DropCutRows
DELETE FROM cron_audit_log WHERE seq <= (SELECT cut_seq FROM cron_audit_chain);
