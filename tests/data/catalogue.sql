-- One of everything a catalogue can hold. The reader's role gets its rights at the end.
CREATE EXTENSION pg_stat_statements;
CREATE EXTENSION postgres_fdw;
CREATE SCHEMA "Sales";
CREATE SCHEMA closed;

CREATE TYPE mood AS ENUM ('sad', 'so so', 'happy');
COMMENT ON TYPE mood IS 'How someone feels';
ALTER TYPE mood ADD VALUE 'angry' BEFORE 'sad';
CREATE DOMAIN "год" AS integer CHECK (VALUE >= 1901 AND VALUE <= 2155);
CREATE DOMAIN late_year AS "год" NOT NULL CHECK (VALUE > 2000);
CREATE TYPE "Sales"."Size Of Box" AS ENUM ('S', 'M');

CREATE TABLE people (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name character varying(40) NOT NULL DEFAULT 'nobody',
    email text,
    feels mood,
    moods mood[],
    born "год",
    joined late_year,
    tags text[],
    price numeric(10,2) DEFAULT 1.5,
    at timestamp(3) with time zone,
    gross numeric GENERATED ALWAYS AS (price * 1.2) STORED,
    mail_domain text GENERATED ALWAYS AS (split_part(email, '@', 2)) STORED,
    dropped int,
    CONSTRAINT price_positive CHECK (price > 0),
    CONSTRAINT email_short CHECK (length(email) < 80)
);
ALTER TABLE people DROP COLUMN dropped;
ALTER TABLE people ADD CONSTRAINT old_price CHECK (price < 100000) NOT VALID;
CREATE UNIQUE INDEX people_name_born ON people (name, born) INCLUDE (price);
CREATE UNIQUE INDEX people_partial ON people (name) WHERE price > 3;
CREATE UNIQUE INDEX people_lower ON people (lower(name));
COMMENT ON TABLE people IS 'Everyone; ''quoted'' and "so"';
COMMENT ON COLUMN people.name IS 'What they are called';

CREATE TABLE "Sales"."Order Lines" (
    "Order" int, "Line No" int, person bigint REFERENCES people, box "Sales"."Size Of Box",
    PRIMARY KEY ("Order", "Line No"),
    UNIQUE (box, person)
);
CREATE TABLE parcels (
    id int PRIMARY KEY, "order" int, line int, owner bigint,
    CONSTRAINT to_line FOREIGN KEY ("order", line) REFERENCES "Sales"."Order Lines" ("Order", "Line No")
);
ALTER TABLE parcels ADD CONSTRAINT to_owner FOREIGN KEY (owner) REFERENCES people NOT VALID;

CREATE TABLE events (id int, day date NOT NULL, parcel int REFERENCES parcels, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
DO $$ BEGIN
    FOR n IN 0..99 LOOP
        EXECUTE format('CREATE TABLE events_%s PARTITION OF events FOR VALUES FROM (%L) TO (%L)',
                       n, date '2024-01-01' + n, date '2024-01-01' + n + 1);
    END LOOP;
END $$;
CREATE TABLE follow_ups (event int, day date, FOREIGN KEY (event, day) REFERENCES events);

CREATE VIEW adults AS SELECT id, name FROM people WHERE born < 2000;
CREATE VIEW contacts AS SELECT id, upper(email) AS shouted FROM people;
CREATE VIEW contacts_again AS SELECT shouted FROM contacts;
CREATE VIEW as_json AS SELECT id, to_jsonb(p) AS everything FROM people p;
CREATE VIEW head_count AS SELECT count(*) AS n FROM people;
CREATE MATERIALIZED VIEW totals AS SELECT born, count(*) AS n FROM people GROUP BY born WITH NO DATA;
COMMENT ON MATERIALIZED VIEW totals IS 'People by year';
CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw;
CREATE FOREIGN TABLE far_away (id int, note text) SERVER elsewhere;

CREATE TABLE closed.secrets (id int);
CREATE TABLE forbidden (id int);
CREATE TABLE half_open (id int, note text, salary int, CHECK (salary > id));
CREATE TEMP TABLE passing (id int);

GRANT USAGE ON SCHEMA "Sales" TO catalogue_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA public, "Sales", closed TO catalogue_reader;
REVOKE SELECT ON forbidden, half_open FROM catalogue_reader;
GRANT SELECT (id, note) ON half_open TO catalogue_reader;
