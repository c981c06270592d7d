-- The key that seals what clients keep for us and send back: page tokens, resume tokens. Whoever changes it makes all of
-- them void, once controllers have been restarted. Two random UUIDs have 244 bits that nobody can guess.
CREATE TABLE cron_keys (
    name           text PRIMARY KEY,
    key            bytea NOT NULL CHECK (octet_length(key) >= 32),
    made_at        timestamptz NOT NULL DEFAULT now()
);
INSERT INTO cron_keys (name, key)
VALUES ('seal', sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));
-- works with: 15
